// The smallest worker there can be: claims ahead, keeps `concurrency` handlers going, acks what ended in one call.

/** Tasks of one claim; more did not drain faster. */
const claimMax = 500

/**
 * @template Delivery
 * @typedef {object} Source what a pool works on
 * @property {(max: number) => Promise<Delivery[]>} claim
 * @property {(deliveries: Delivery[]) => Promise<unknown>} ack resolves once durable
 * @property {() => Promise<unknown>} wait resolves when there may be work
 * @property {(delivery: Delivery) => Promise<unknown>} handle
 * @property {(delivery: Delivery) => void} done called once its ack is durable
 */

/** @template Delivery */
export class Pool {
  #source
  #concurrency
  /** @type {Delivery[]} */
  #buffer = []
  #next = 0
  #running = 0
  #claiming = false
  /** @type {Delivery[]} */
  #ended = []
  #acksInFlight = 0
  #stopping = false
  #flushPlanned = false
  /** @type {() => void} */
  #stopped = () => {}

  /** @param {Source<Delivery>} source @param {number} concurrency */
  constructor(source, concurrency) {
    this.#source = source
    this.#concurrency = concurrency
    this.#claim()
  }

  /** Resolves when all it claimed was handled and acked; the caller wakes the source's waiters. */
  stop() {
    this.#stopping = true
    return new Promise((resolve) => {
      this.#stopped = () => resolve(undefined)
      this.#endIfIdle()
    })
  }

  #claim() {
    if (this.#claiming || this.#stopping) return
    this.#claiming = true
    this.#source.claim(claimMax).then(async (deliveries) => {
      if (deliveries.length === 0 && !this.#stopping) await this.#source.wait()
      this.#claiming = false
      this.#buffer = this.#next < this.#buffer.length ? [...this.#buffer.slice(this.#next), ...deliveries] : deliveries
      this.#next = 0
      this.#fill()
    })
  }

  #fill() {
    while (this.#running < this.#concurrency && this.#next < this.#buffer.length) {
      const delivery = /** @type {Delivery} */ (this.#buffer[this.#next++])
      this.#running++
      this.#source.handle(delivery).then(() => {
        this.#running--
        this.#ended.push(delivery)
        this.#fill()
      })
    }
    if (this.#buffer.length - this.#next < claimMax / 2) this.#claim()
    if (this.#running === 0) this.#flush()
    else if (!this.#flushPlanned) {
      this.#flushPlanned = true
      setImmediate(() => {
        this.#flushPlanned = false
        this.#flush()
      })
    }
    this.#endIfIdle()
  }

  #flush() {
    const ended = this.#ended
    if (ended.length === 0) return
    this.#ended = []
    this.#acksInFlight++
    this.#source.ack(ended).then(() => {
      this.#acksInFlight--
      for (const delivery of ended) this.#source.done(delivery)
      this.#endIfIdle()
    })
  }

  #endIfIdle() {
    const busy = this.#claiming || this.#running > 0 || this.#ended.length > 0 || this.#acksInFlight > 0
    if (this.#stopping && !busy) this.#stopped()
  }
}
