// A storm on PostgreSQL: workers and producers killed, stopped and asked to end, judged by every law.
import { expect, it } from 'vitest'
import { enough, judge } from '../laws/checker.js'
import { storm } from '../laws/storm.js'
import { postgresSubject } from './law-store.js'
import { serverOfFile } from './server.js'

const subject = postgresSubject(serverOfFile())
const seed = Number(process.env.STORM_SEED ?? Math.floor(Math.random() * 2 ** 32))
const size = { kills: 50, stops: 4, terms: 4 }

it('keeps every law through 50 kills', { timeout: 400_000 }, async () => {
  console.log(`STORM_SEED=${seed}`)
  const store = await subject.fresh()
  try {
    const judgement = judge(await storm(store, { seed, ...size }))
    console.log(JSON.stringify(judgement.seen))
    expect(judgement.violations).toEqual([])
    expect(judgement.seen.kills).toBeGreaterThanOrEqual(size.kills)
    expect(judgement.seen.stale).toBeGreaterThanOrEqual(enough.stale)
    expect(judgement.verdict).toBe('PASS')
  } finally {
    await store.remove()
  }
})
