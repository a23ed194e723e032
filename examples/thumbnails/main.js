// `npm start`: a pile of real pictures, four worker processes, one of them killed on the way, and nothing lost.
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { connect } from 'piecework'
import { planItems } from './plan.js'
import { startPool } from './pool.js'
import { showProgress } from './progress.js'
import { countFigures, objections, words } from './summary.js'

/** @typedef {import('./progress.js').Stats} Stats */

const { json, folder } = readOptions()
const thumbnails = join(folder, 'thumbnails')
mkdirSync(thumbnails, { recursive: true })
const items = planItems(thumbnails)
const url = `sqlite:${relative('', join(folder, 'thumbnails.db'))}`
const say = (/** @type {string} */ text) => process.stderr.write(`${text}\n`)

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => interrupted.abort(new Error('interrupted')))

const pw = await connect(url)
// A truncated file stays truncated: three deliveries are enough to know.
const queue = pw.queue('thumbnails', { deliveriesMax: 3, backoff: { baseMs: 200 } })
const batch = pw.batch('natural-earth')
try {
  const again = (await batch.stats())?.finishedAt instanceof Date
  if (!again) await drain(await fill())
  process.exitCode = await report(again)
} catch (error) {
  const { message, cure } = /** @type {Error & { cure?: string }} */ (error)
  say(cure === undefined ? message : `${message} ${cure}`)
  say('Nothing is lost: npm start goes on where this run ended.')
  process.exitCode = interrupted.signal.aborted ? 130 : 1
} finally {
  await pw.close()
}

/** Puts the items into the batch, unless that was done; answers how the batch stands. */
async function fill() {
  const before = await batch.stats()
  if (before?.sealed) return before
  // No worker runs before the seal. So an item that a former run put there still holds its dedup key.
  await queue.enqueueMany(items, ({ name }) => ({ batch, dedupKey: name }))
  await batch.seal()
  return /** @type {Stats} */ (await batch.stats())
}

/** @param {Stats} before */
async function drain(before) {
  const open = before.total - before.done - before.dead
  say(`${open} of ${before.total} items to do, in ${url}`)
  // Once per batch: a run that goes on after an interrupted one need not lose another worker.
  const killAt = before.returned > 0 ? Number.POSITIVE_INFINITY : Math.min(20, open)
  const progress = showProgress(batch, process.stderr)
  const pool = startPool({ url, logFile: join(folder, 'workers.log'), killAt, onKill: progress.killed })
  try {
    const signal = AbortSignal.any([interrupted.signal, pool.deserted])
    await batch.done({ signal, waitMs: 300_000 })
  } finally {
    await pool.stop()
    await progress.stop()
  }
}

/** @param {boolean} again */
async function report(again) {
  const stats = /** @type {Stats} */ (await batch.stats())
  const figures = await countFigures(stats, items, thumbnails)
  const letters = (await queue.dead.list({ batch: batch.name })).items
  const lines = letters.map(
    ({ payload, error }) => `${basename(/** @type {any} */ (payload).picture)}: ${firstLine(error)}`,
  )
  const text = words(figures, lines, { again, url })
  if (json) say(text)
  else console.log(text)
  const wrong = objections(figures)
  for (const objection of wrong) say(`NOT AS IT SHOULD BE: ${objection}`)
  if (json) console.log(JSON.stringify({ ...figures, ...(again && { again }) }))
  return wrong.length === 0 ? 0 : 1
}

/** @param {string | null} error as kept: its class, its message, its stack */
function firstLine(error) {
  return (error ?? '').replace(/^Error: /, '').split('\n')[0]
}

/** `--new` empties the work folder; `--folder` says where it lies, for tests. */
function readOptions() {
  try {
    const { values } = parseArgs({
      options: { json: { type: 'boolean' }, new: { type: 'boolean' }, folder: { type: 'string' } },
    })
    const work = join(values.folder ?? fileURLToPath(new URL('.', import.meta.url)), '.work')
    if (values.new) rmSync(work, { recursive: true, force: true })
    return { json: values.json === true, folder: work }
  } catch (error) {
    console.error(`${/** @type {Error} */ (error).message}\nnpm start -- [--new] [--json]`)
    process.exit(2)
  }
}
