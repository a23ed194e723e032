// Random histories on SQLite agree with the model in every answer, state and figure (P3-P7, P9, P10, P12).
import { expect, it } from 'vitest'
import { runHistories } from './histories.js'

// A failure prints the line that replays it; PW_MODEL_RUNS=10 looks ten times as far.
const { PW_MODEL_SEED, PW_MODEL_PATH, PW_MODEL_FILE, PW_MODEL_RUNS = '1' } = process.env
const seed = PW_MODEL_SEED === undefined ? Date.now() % 2 ** 31 : Number(PW_MODEL_SEED)
const scale = Number(PW_MODEL_RUNS)

const places = [
  { where: 'in memory', file: false, runs: 400 * scale },
  { where: 'in a file with two handles', file: true, runs: 120 * scale },
]
const chosen = places.filter(({ file }) => PW_MODEL_PATH === undefined || file === (PW_MODEL_FILE === '1'))

/** What 100 histories must have shown at least, or they prove nothing. */
const common = {
  ...{ enqueued: 600, delivered: 500, redelivered: 150, done: 400, scheduled: 40, ready: 15, dead: 30, stale: 200 },
  ...{ duplicate: 20, repeated: 100, matured: 50, promoted: 15, expired: 50, died: 25 },
  ...{ 'extend held': 20, 'extend stale': 20, route: 20, 'route ended': 3 },
}
/** What is seldom, and asked of the larger run alone. */
const seldom = {
  refused: 3,
  cancelled: 1,
  redrive: 5,
  discard: 2,
  edit: 2,
  purge: 5,
  cancel: 5,
  suspect: 1,
  finished: 5,
  followed: 3,
  differs: 2,
}

for (const { where, file, runs } of chosen) {
  it(`${runs} random histories ${where}`, { timeout: 300_000 * scale }, async () => {
    console.log(`model: seed ${seed} ${where}`)
    const { failure, seen } = await runHistories({ file, runs, seed, path: PW_MODEL_PATH })
    if (failure !== null) expect.fail(`seed ${seed}\n${failure}`)
    const floor = (PW_MODEL_PATH === undefined ? runs : 0) / 100
    const few = Object.entries(file ? common : { ...common, ...seldom }).filter(
      ([what, per100]) => (seen.get(what) ?? 0) < per100 * floor,
    )
    expect(few, `VACUOUS, seen: ${JSON.stringify(Object.fromEntries(seen))}`).toEqual([])
  })
}
