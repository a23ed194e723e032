// `piecework audit`: counts every task and sets the count beside the figures that status shows.
import type { Command } from 'commander'
import type { ProofRecord } from '../../task/records.js'
import { table } from '../print.js'
import { acts } from '../program.js'
import { withStore } from '../store.js'

export function auditCommand(program: Command): void {
  const command = program
    .command('audit')
    .description('prove the figures: count every task in one snapshot; exit 1 when one differs from what is shown')
  acts(command, async ({ url, output }) =>
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
    }),
  )
}

const differing = ({ shown, counted }: ProofRecord): string[] =>
  Object.keys(shown).filter((figure) => shown[figure] !== counted[figure])
