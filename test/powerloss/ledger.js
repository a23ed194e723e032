// Keeps the books over the marks of a workload: what the store owes at a moment, and what it gave out by then.

/**
 * @typedef {import('./marks.js').Mark} Mark
 * @typedef {import('./marks.js').Asked} Asked
 *
 * @typedef {object} Owed one task that was asked for
 * @property {Asked} asked
 * @property {string | null} id once known
 * @property {boolean} accepted
 * @property {boolean} duplicate answered with another task's id: it must never exist itself
 * @property {boolean} mayBeGone somebody asked for its end
 * @property {boolean} gone its end was accepted
 * @property {boolean} dead its burial was accepted, and nobody asked for its return since: if it is there, it is dead
 * @property {boolean} revived its return was accepted, and it was not delivered since
 * @property {number} seen the highest delivery anybody had
 * @property {number} number the highest delivery that must be known
 * @property {number} settled the last delivery whose end was accepted
 *
 * @typedef {object} Asking an enqueue under a request id
 * @property {string} request
 * @property {Asked[]} tasks
 * @property {string[] | null} ids
 * @property {number} wallMs when it was asked
 */

export class Ledger {
  /** @type {Map<number, Owed>} */
  tasks = new Map()
  /** The highest id and fence anybody has seen. */
  idMax = 0
  fenceMax = 0
  wallMs = 0
  /** @type {Asking[]} */
  requests = []
  /** @type {(Mark & { is: 'flush' })[]} */
  flushes = []
  /** Receipts of deliveries nobody has asked to end yet, by task id. */
  held = /** @type {Map<string, string>} */ (new Map())
  /** What an operator set: the accepted value and those asked for since. */
  settings = /** @type {Map<string, number[]>} */ (new Map())
  sealed = /** @type {string[]} */ ([])
  accepted = 0
  /** @type {Map<string, Owed>} */
  #byId = new Map()
  /** Dead tasks whose return was asked for and that nobody had since. */
  #reviving = /** @type {Set<string>} */ (new Set())

  note(/** @type {Mark} */ mark) {
    this.wallMs = Math.max(this.wallMs, mark.wallMs)
    switch (mark.is) {
      case 'ask':
        return this.#asked(mark)
      case 'in':
        return this.#accepted(mark)
      case 'had':
        return this.#delivered(mark)
      case 'end':
        return this.#ending(mark)
      case 'ended':
        return this.#ended(mark)
      case 'flush':
        this.flushes.push(mark)
        return
      case 'sealed':
        this.accepted++
        this.sealed.push(mark.batch)
        return
      case 'set':
        this.settings.get(mark.queue)?.push(mark.headStartMs)
        return
      case 'isSet':
        this.accepted++
        this.settings.set(mark.queue, [mark.headStartMs])
        return
      case 'empty':
        this.accepted++
        // Whatever became of each: drained says that none of them is open, and none was buried by its handler.
        for (const n of mark.ns) this.#end(this.#task(n))
        return
      case 'jump':
        return
      default:
        return this.#changed(mark)
    }
  }

  /** The task with this id, if it is known whose it is. */
  byId(/** @type {string} */ id) {
    return this.#byId.get(id)
  }

  #asked(/** @type {Mark & { is: 'ask' }} */ { tasks, request, wallMs }) {
    for (const asked of tasks) {
      const state = { accepted: false, duplicate: false, mayBeGone: false, gone: false, dead: false, revived: false }
      // A queue that is worked on by handlers that note nothing: any of its tasks may have been acked by now.
      const mayBeGone = asked.queue.startsWith('burst')
      this.tasks.set(asked.n, { asked, id: null, ...state, mayBeGone, seen: 0, number: 0, settled: 0 })
    }
    if (request !== undefined) this.requests.push({ request, tasks, ids: null, wallMs })
  }

  #accepted(/** @type {Mark & { is: 'in' }} */ { ns, answers, request }) {
    this.accepted++
    ns.forEach((n, i) => {
      const task = this.#task(n)
      const answer = answers?.[i]
      if (answer) this.idMax = Math.max(this.idMax, Number(answer.id))
      task.duplicate = answer?.duplicate ?? false
      task.accepted = true
      if (answer && !task.duplicate) this.#named(task, answer.id)
    })
    if (request === undefined || !answers) return
    const asking = this.requests.find((one) => one.request === request)
    if (asking) asking.ids = answers.map(({ id }) => id)
  }

  #delivered(/** @type {Mark & { is: 'had' }} */ { id, n, number, fence, receipt }) {
    const task = this.#task(n)
    this.#named(task, id)
    this.idMax = Math.max(this.idMax, Number(id))
    this.fenceMax = Math.max(this.fenceMax, fence)
    task.seen = Math.max(task.seen, number)
    task.revived = false
    this.#reviving.delete(id)
    // A first delivery may be forgotten; a later one is on the disk before its handler starts.
    if (number > 1) task.number = Math.max(task.number, number)
    if (receipt) this.held.set(id, receipt)
  }

  #ending(/** @type {Mark & { is: 'end' }} */ { id, verdict }) {
    this.held.delete(id)
    if (verdict === 'ack') this.#known(id).mayBeGone = true
  }

  #ended(/** @type {Mark & { is: 'ended' }} */ { id, number, outcome }) {
    const task = this.#known(id)
    if (outcome === 'stale') return
    this.accepted++
    if (outcome === 'done' || outcome === 'cancelled') {
      this.#end(task)
      return
    }
    task.number = Math.max(task.number, number)
    task.settled = Math.max(task.settled, number)
    // Somebody may have asked for its return, and got it, while this answer was on its way.
    if (outcome === 'dead') task.dead = number === task.seen && !this.#reviving.has(id)
  }

  #changed(/** @type {Mark & { is: 'remove' | 'revive' | 'removed' | 'revived' }} */ { is, ids }) {
    if (is === 'removed' || is === 'revived') this.accepted++
    for (const id of ids) {
      const task = this.#byId.get(id)
      if (is === 'revive') this.#reviving.add(id)
      if (!task) continue
      if (is === 'remove') task.mayBeGone = true
      else if (is === 'removed') this.#end(task)
      else if (is === 'revive') task.dead = false
      else task.revived = this.#reviving.has(id)
    }
  }

  #end(/** @type {Owed} */ task) {
    task.accepted = true
    task.mayBeGone = true
    task.gone = true
  }

  #named(/** @type {Owed} */ task, /** @type {string} */ id) {
    task.id = id
    this.#byId.set(id, task)
  }

  #task(/** @type {number} */ n) {
    const task = this.tasks.get(n)
    if (!task) throw new Error(`Task ${n} is spoken of before it was asked for.`)
    return task
  }

  #known(/** @type {string} */ id) {
    const task = this.#byId.get(id)
    if (!task) throw new Error(`Task ${id} was settled before it was delivered.`)
    return task
  }
}
