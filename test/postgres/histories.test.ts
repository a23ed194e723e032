// Random histories on PostgreSQL agree with the model in every answer, state and figure (P3-P7, P9, P10, P12).
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type History, histories, type Move } from '../model/moves.js'
import { play } from '../model/play.js'
import { serverOfFile } from './server.js'
import { postgresStore } from './subject.js'

const { PW_MODEL_SEED, PW_MODEL_PATH, PW_MODEL_RUNS } = process.env
const seed = PW_MODEL_SEED === undefined ? Date.now() % 2 ** 31 : Number(PW_MODEL_SEED)
const runs = Math.ceil(40 * Number(PW_MODEL_RUNS ?? 1))
const server = serverOfFile()

/** What 100 histories must have shown at least, or they prove nothing; each act of an operator alone is too seldom. */
const floors = {
  ...{ enqueued: 500, delivered: 300, redelivered: 100, done: 200, scheduled: 20, ready: 3, dead: 30, stale: 100 },
  ...{ duplicate: 20, repeated: 100, matured: 50, promoted: 10, expired: 30, died: 20, act: 20 },
  ...{ 'extend held': 20, 'extend stale': 20 },
}
const acts = ['redrive', 'purge', 'cancel', 'discard', 'edit', 'move']

/** Time to look for a smaller history that fails too. */
const shrinkMs = 45_000

/** Here the engine's clock is the server's wall clock: there is no other one that could jump away from it. */
const ofOneClock = (move: Move): boolean => move.do !== 'jump' && move.do !== 'sleep'
const onPostgres = ({ rules, moves }: History): History => ({ rules, moves: moves.filter(ofOneClock) })

it(`${runs} random histories with two handles`, { timeout: 600_000 }, async () => {
  console.log(`model: seed ${seed} on PostgreSQL`)
  const running = await server()
  const seen = new Map<string, number>()
  let shrinkUntil = Number.POSITIVE_INFINITY
  const property = fc.asyncProperty(histories(true), async (history) => {
    if (performance.now() > shrinkUntil) return
    const store = await postgresStore(running)
    try {
      await play(onPostgres(history), store, 2, seen)
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + shrinkMs)
      throw error
    } finally {
      await store.remove()
    }
  })
  const path = PW_MODEL_PATH === undefined ? {} : { path: PW_MODEL_PATH }
  const details = await fc.check(property, { seed, numRuns: runs, ...path, interruptAfterTimeLimit: 540_000 })
  if (details.failed && details.counterexample) {
    const [{ rules, moves }] = details.counterexample
    const story = onPostgres({ rules, moves }).moves.map((move) => `  ${JSON.stringify(move)}`)
    const error = details.errorInstance instanceof Error ? details.errorInstance.stack : String(details.errorInstance)
    const again = `PW_MODEL_SEED=${seed} PW_MODEL_PATH=${details.counterexamplePath}`
    expect.fail([`Replay: ${again}`, JSON.stringify(rules), ...story, error].join('\n'))
  }
  seen.set(
    'act',
    acts.reduce((sum, act) => sum + (seen.get(act) ?? 0), 0),
  )
  const few = Object.entries(floors).filter(([what, floor]) => (seen.get(what) ?? 0) < (floor * runs) / 100)
  expect(few, `VACUOUS, seen: ${JSON.stringify(Object.fromEntries(seen))}`).toEqual([])
})
