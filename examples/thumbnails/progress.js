// Shows how far the batch is: a bar on a terminal, elsewhere a line a second; and what became of the killed worker.

/** @typedef {NonNullable<Awaited<ReturnType<import('piecework').Batch['stats']>>>} Stats how a batch stands */

/**
 * @param {import('piecework').Batch} batch
 * @param {NodeJS.WriteStream} stream
 */
export function showProgress(batch, stream) {
  const everyMs = stream.isTTY ? 100 : 1000
  let shown = ''
  let shownAt = Number.NEGATIVE_INFINITY
  let killedAt = 0
  let looking = Promise.resolve()

  const say = (/** @type {string} */ text) =>
    stream.write(stream.isTTY ? `\r${text.padEnd(shown.length)}\n` : `${text}\n`)
  const show = (/** @type {string} */ line) => {
    if (line === shown) return
    shown = line
    shownAt = performance.now()
    stream.write(stream.isTTY ? `\r${line}` : `${line}\n`)
  }
  const look = async (last = false) => {
    const stats = await batch.stats()
    if (stats === null) return
    if (killedAt !== 0 && stats.returned > 0) {
      say(`what it held was given back after ${seconds(performance.now() - killedAt)}, for the others to do`)
      killedAt = 0
    }
    if (last || performance.now() >= shownAt + everyMs) show(lineOf(stats))
  }
  const timer = setInterval(() => {
    looking = looking.then(() => look())
  }, 50)

  return {
    /** Nobody tells the other workers: they find it out by themselves. */
    killed(/** @type {number} */ worker, /** @type {number} */ task) {
      killedAt = performance.now()
      say(`worker ${worker} was killed with SIGKILL while it held task number ${task}`)
    },
    /** Shows the last state. */
    async stop() {
      clearInterval(timer)
      await looking.then(() => look(true))
      if (stream.isTTY) stream.write('\n')
    },
  }
}

const seconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(1)} s`

/** @param {Stats} stats */
function lineOf({ total, done, dead, retries, returned }) {
  const cells = 30
  const bar = '#'.repeat(Math.floor((cells * (done + dead)) / total)).padEnd(cells, '.')
  return `[${bar}] ${done + dead} of ${total}   retries ${retries}   redelivered ${returned}   dead ${dead}`
}
