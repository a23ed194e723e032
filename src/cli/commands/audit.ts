// `piecework audit`: sets every figure beside a full count, or lists the acks of tasks that were delivered again.
import type { Command } from 'commander'
import type { Engine } from '../../engine/contract.js'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { redeliveredKeepMs } from '../../task/limits.js'
import type { ProofRecord, RedeliveredRecord } from '../../task/records.js'
import { isoOf, table } from '../print.js'
import { type Act, acts } from '../program.js'
import { withStore } from '../store.js'
import { duration } from '../values.js'

export function auditCommand(program: Command): void {
  const command = program
    .command('audit')
    .description('prove the figures: count every task in one snapshot; exit 1 when one differs from what is shown')
    .option('--redelivered', 'list acks of tasks that had been delivered more than once, to reconcile their effects')
    .option('--since <duration>', 'with --redelivered: acked since so long ago (default: 7 days, all that is kept)')
  acts(command, async (context, args, options) => {
    if (options.redelivered === true) return listRedelivered(context, args, options)
    if (options.since === undefined) return prove(context, args, options)
    throw new PieceworkError('PW_USAGE', '--since goes with --redelivered.')
  })
}

const prove: Act = async ({ url, output }) =>
  withStore(url, { create: false }, async ({ engine }) => {
    const records = (await engine.select('proof', {}, null)).items as unknown as ProofRecord[]
    const rows = records.map((record) => ({ ...record, equal: differing(record).length === 0 }))
    const wrong = rows.filter((row) => !row.equal)
    if (output.json) for (const row of rows) await output.value(row)
    else if (wrong.length === 0)
      await output.result(`${rows.length} types and batches: every figure equals the full count`)
    else {
      const cells = wrong.flatMap((row) =>
        differing(row).map((figure) => [row.kind, row.name, figure, row.shown[figure], row.counted[figure]]),
      )
      await output.result(table(['of', 'name', 'figure', 'shown', 'counted'], cells))
    }
    return wrong.length === 0 ? 0 : 1
  })

const differing = ({ shown, counted }: ProofRecord): string[] =>
  Object.keys(shown).filter((figure) => shown[figure] !== counted[figure])

const listRedelivered: Act = async ({ url, output }, _, options) => {
  const sinceMs = options.since === undefined ? redeliveredKeepMs : duration('--since', String(options.since))
  return withStore(url, { create: false }, async ({ engine }) => {
    const rows = await redeliveredIn(engine, systemClock.wallMs() - sinceMs)
    if (output.json) {
      for (const { enqueuedAt, startedAt, ackedAt, ...row } of rows) {
        await output.value({
          ...row,
          enqueuedAt: isoOf(enqueuedAt),
          startedAt: isoOf(startedAt),
          ackedAt: isoOf(ackedAt),
        })
      }
    } else if (rows.length === 0) await output.result('no task that was delivered more than once was acked')
    else {
      const cells = rows.map(({ id, queue, type, key, deliveries, workers, startedAt, ackedAt }) => {
        return [id, queue, type, key, deliveries, workers.join(' '), isoOf(startedAt), isoOf(ackedAt)]
      })
      await output.result(table(['id', 'queue', 'type', 'key', 'deliveries', 'workers', 'startedAt', 'ackedAt'], cells))
    }
    return 0
  })
}

async function redeliveredIn(engine: Engine, sinceAt: number): Promise<RedeliveredRecord[]> {
  const rows: RedeliveredRecord[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await engine.select('redelivered', { sinceAt, limit: 1000 }, cursor)
    rows.push(...(page.items as unknown as RedeliveredRecord[]))
    if (page.next === null) return rows
    cursor = page.next
  }
}
