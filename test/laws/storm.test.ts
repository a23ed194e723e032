// The laws in a storm: kills, stops and deploys over four workers and two producers, judged by each law in turn.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Evidence, enough, type Judgement, judge, type Law } from './checker.js'
import type { Store } from './eyes.js'
import { faults } from './faults.js'
import { subjects } from './stores.js'
import { storm } from './storm.js'

const long = process.env.MODE === 'storm'
const size = long ? { kills: 600, stops: 60, terms: 60 } : { kills: 50, stops: 5, terms: 4 }
const laws: readonly Law[] = ['P1', 'P3', 'P4', 'P5', 'P6', 'P7', 'P9', 'P12', 'P13']
const limitMs = long ? 1_800_000 : 300_000
const seed = Number(process.env.STORM_SEED ?? Math.floor(Math.random() * 2 ** 32))

describe.each(subjects)('a storm on $name', (subject) => {
  let store: Store
  let evidence: Evidence
  let judgement: Judgement

  beforeAll(async () => {
    store = await subject.fresh()
    console.log(`STORM_SEED=${seed}`)
    evidence = await storm(store, { seed, ...size })
    judgement = judge(evidence)
    console.log(JSON.stringify(judgement.seen))
  }, limitMs)
  afterAll(() => store.remove())

  it('saw enough to judge', () => {
    expect(judgement.seen.acks).toBeGreaterThanOrEqual(enough.acks)
    expect(judgement.seen.kills).toBeGreaterThanOrEqual(size.kills)
    expect(judgement.seen.stale).toBeGreaterThanOrEqual(enough.stale)
    expect(judgement.verdict).toBe('PASS')
  })

  it.each(laws)('keeps %s', (law) => {
    expect(judgement.violations.filter((violation) => violation.law === law)).toEqual([])
  })

  it.each(faults)('would object under $law to $name', ({ law, plant }) => {
    const doctored = structuredClone(evidence)
    plant(doctored)
    const { verdict, violations } = judge(doctored)
    expect(verdict).toBe('FAIL')
    expect(violations.map((violation) => violation.law)).toContain(law)
  })

  it('blames no stop for the death of a process that had the same number before or after', () => {
    const died = evidence.chronicle.find((entry) => entry.outcome === 'died')
    const death = evidence.deaths.find(({ pid }) => died?.worker?.includes(`-${pid}-`))
    if (!death) throw new Error('VACUOUS: no death in this storm')
    const { pid } = death
    const before = { pid, signal: 'SIGTERM', startedAt: 0, at: 1, exitedAt: 2 }
    const after = { ...before, startedAt: death.exitedAt + 1, at: death.exitedAt + 2, exitedAt: death.exitedAt + 3 }
    expect(judge({ ...evidence, deaths: [before, after, ...evidence.deaths] }).verdict).toBe('PASS')
  })

  it('says VACUOUS of a run in which nothing stale was refused', () => {
    const quiet = { ...evidence, totals: { ...evidence.totals, stale: 0 } }
    expect(judge(quiet).verdict).toBe('VACUOUS')
  })
})
