// `piecework batch`: lists batches, shows one, seals or cancels one, forgets one so that its items may run again.
import type { Command } from 'commander'
import { PieceworkError } from '../../ground/errors.js'
import { cancelBatch, openIn } from '../../queue/batch.js'
import { checkName } from '../../task/limits.js'
import type { BatchRecord } from '../../task/records.js'
import { batchesOf, leftovers, type RunInfo, readBatch, refuseBusy } from '../batch.js'
import { confirm } from '../confirm.js'
import { isoOf, oneLine, table } from '../print.js'
import { type Act, acts } from '../program.js'
import { type Store, withStore } from '../store.js'

export function batchCommand(program: Command): void {
  const batch = program.command('batch').description('list batches, show one, seal, cancel or forget one')
  acts(batch.command('list').description('list the batches, the oldest first'), list)
  acts(batch.command('show').description('show one batch').argument('<name>'), show)
  const seal = batch.command('seal').description('say that nothing will be added any more, so that it can finish')
  acts(seal.argument('<name>'), sealAct)
  const cancel = batch
    .command('cancel')
    .description('seal a batch and cancel what is open of it; what runs is asked to end')
  acts(cancel.argument('<name>').option('--yes', 'do not ask'), cancelAct)
  const forget = batch.command('forget').description('forget a batch and the identities of its items; its tasks stay')
  acts(forget.argument('<name>').option('--yes', 'do not ask'), forgetAct)
}

const shapeOf = (batch: BatchRecord) => {
  const { name, createdAt, finishedAt, followUp, info, ...counts } = batch
  return {
    batch: name,
    ...counts,
    open: openIn(batch),
    createdAt: isoOf(createdAt),
    finishedAt: isoOf(finishedAt),
    followUp,
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

const sealAct: Act = async ({ url, output }, [word]) =>
  withStore(url, { create: false }, async (store) => {
    const { name } = await named(store, word)
    await store.engine.configure('batch', name, { sealed: true }, store.connection.actor)
    const shape = shapeOf(await named(store, name))
    await (output.json ? output.value(shape) : output.result(`${name} sealed, ${shape.open} open`))
    return 0
  })

const cancelAct: Act = async ({ url, output }, [word], options) =>
  withStore(url, { create: false }, async (store) => {
    const batch = await named(store, word)
    const { name } = batch
    await confirm(openIn(batch), `cancel what is open of batch ${name}`, options.yes === true)
    const { cancelled, asked } = await cancelBatch(store.connection, name)
    if (output.json) await output.value({ batch: name, cancelled, asked })
    else await output.result(`${name} sealed, ${cancelled} cancelled, ${asked} asked to end`)
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
