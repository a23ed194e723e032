// Two programs with the same schedule in their code, as two machines of one deploy have it: each slot comes once.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'piecework'

const folder = await mkdtemp(join(tmpdir(), 'piecework-schedules-'))
const url = `sqlite:${join(folder, 'work.db')}`
const programs = await Promise.all(['first', 'second'].map((name) => start(name)))

const seen = new Set()
await new Promise((done) => {
  for (const { name, reports } of programs) {
    reports.work((payload, { headers }) => {
      const slot = headers['piecework-slot'] ?? ''
      console.log(`${name} makes the ${payload.of} of ${slot}${seen.has(slot) ? ' AGAIN' : ''}`)
      seen.add(slot)
      if (seen.size === 4) done(undefined)
    })
  }
})

for (const { pw } of programs) await pw.close()
await rm(folder, { recursive: true })

/** What every process of the deploy does when it starts. */
async function start(name) {
  const pw = await connect(url)
  const reports = pw.queue('reports')
  // Set again it goes on where it was. Cron with seconds first; `tz` is UTC unless it says so.
  await reports.schedule(
    'each-second',
    { cron: '* * * * * *', tz: 'Europe/Berlin', missed: 'latest' },
    { of: 'report' },
  )
  // While a report is not done, no second one waits: its dedup key stands for it.
  await reports.schedule('yearly', { cron: '0 6 1 1 *', dedupKey: 'yearly' }, { of: 'year' })
  return { name, pw, reports }
}
