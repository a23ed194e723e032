// `piecework batch`: lists batches, shows one, forgets one so that its items may run again.
import type { Command } from 'commander'
import { PieceworkError } from '../../ground/errors.js'
import { checkName } from '../../task/limits.js'
import type { BatchRecord } from '../../task/records.js'
import { batchesOf, leftovers, openIn, type RunInfo, readBatch, refuseBusy } from '../batch.js'
import { confirm } from '../confirm.js'
import { isoOf, oneLine, table } from '../print.js'
import { type Act, acts } from '../program.js'
import { type Store, withStore } from '../store.js'

export function batchCommand(program: Command): void {
  const batch = program.command('batch').description('list batches, show one, forget one')
  acts(batch.command('list').description('list the batches, the oldest first'), list)
  acts(batch.command('show').description('show one batch').argument('<name>'), show)
  const forget = batch.command('forget').description('forget a batch and the identities of its items; its tasks stay')
  acts(forget.argument('<name>').option('--yes', 'do not ask'), forgetAct)
}

const shapeOf = (batch: BatchRecord) => {
  const { name, createdAt, finishedAt, info, ...counts } = batch
  return {
    batch: name,
    ...counts,
    open: openIn(batch),
    createdAt: isoOf(createdAt),
    finishedAt: isoOf(finishedAt),
    info,
  }
}

const list: Act = async ({ url, output }) =>
  withStore(url, { create: false }, async (store) => {
    const rows: unknown[][] = []
    for await (const batch of batchesOf(store)) {
      const shape = shapeOf(batch)
      if (output.json) await output.value(shape)
      else rows.push([batch.name, batch.total, batch.done, batch.dead, batch.cancelled, shape.open, shape.createdAt])
    }
    const head = ['batch', 'total', 'done', 'dead', 'cancelled', 'open', 'created at']
    if (!output.json) await output.result(table(head, rows))
    return 0
  })

const show: Act = async ({ url, output }, [name]) =>
  withStore(url, { create: false }, async (store) => {
    const shape = shapeOf(await named(store, name))
    if (output.json) await output.value(shape)
    else {
      const lines = Object.entries(shape).map(([field, value]) => {
        return `${field.padEnd(10)} ${oneLine(typeof value === 'object' ? JSON.stringify(value) : String(value))}`
      })
      await output.result(lines.join('\n'))
    }
    return 0
  })

const forgetAct: Act = async ({ url, output }, [word], options) =>
  withStore(url, { create: false }, async (store) => {
    const batch = await named(store, word)
    const { name, total, dead } = batch
    await refuseBusy(store, name)
    // Scripts forget by its name alone; people may have meant another.
    await confirm(total, `forget batch ${name}, whose items could then run again`, options.yes === true, 'people')
    await store.engine.configure('batch', name, null, store.connection.actor)
    output.did(`${name} is forgotten`)
    if (output.json) await output.value({ batch: name, forgotten: true })
    else await output.result(`${name} forgotten`)
    const open = openIn(batch)
    if (output.json || open + dead === 0) return 0
    const next = (batch.info as RunInfo).command === undefined ? [] : ['next:', ...leftovers(batch)]
    output.say([`${open} open and ${dead} dead tasks of it stay in their queue`, ...next].join('\n  '))
    return 0
  })

async function named(store: Store, word: unknown): Promise<BatchRecord> {
  const name = checkName('batch', word)
  const batch = await readBatch(store, name)
  if (batch !== null) return batch
  throw new PieceworkError('PW_BATCH_UNKNOWN', `There is no batch ${JSON.stringify(name)}.`, { name })
}
