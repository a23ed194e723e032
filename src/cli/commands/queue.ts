// `piecework queue`: lists queues, shows and sets their policy, pauses, resumes, moves and purges them.
import type { Command } from 'commander'
import { closest } from '../../ground/closest.js'
import { PieceworkError } from '../../ground/errors.js'
import { amendAll } from '../../queue/amend.js'
import { moveBack, moveTasks, readRoutes } from '../../queue/move.js'
import { checkName } from '../../task/limits.js'
import type { QueueRecord } from '../../task/records.js'
import { confirm } from '../confirm.js'
import { filtered, filterOf, guarded, refuseUnmeant } from '../filters.js'
import { queueNamed, queueNames } from '../names.js'
import { oneLine, table, warningText } from '../print.js'
import { type Act, acts, type Context } from '../program.js'
import { fieldsOf, patchOf } from '../settings.js'
import { type Store, withStore } from '../store.js'

export function queueCommand(program: Command): void {
  const queue = program.command('queue').description('list queues, set their policy, pause, resume, move, purge')
  acts(queue.command('list').description('list the queues'), list)
  const one = (name: string, summary: string) => queue.command(name).description(summary).argument('<queue>')
  acts(one('show', 'show its policy, and where each setting comes from'), show)
  const set = one('set', "set fields of the operator's policy, which wins over the code's: lease=1m deliveries=10")
  const forced = set.argument('<setting...>', 'FIELD=VALUE')
  acts(forced.option('--force', 'also what breaks the order that keys of tasks there were promised'), setAct)
  const unsets = one('unset', "take fields out of the operator's policy, or all of it").argument('[field...]')
  acts(unsets.option('--force', 'also what breaks the order that keys of tasks there were promised'), unset)
  acts(one('pause', 'no claims until it is resumed; what runs goes on'), (...call) => paused(true, ...call))
  acts(one('resume', 'let claims go on'), (...call) => paused(false, ...call))
  const taken = one('move', 'take tasks to another queue; leased ones follow when their delivery ends without an ack')
  taken.option('--to <queue>', 'the other queue, made if need be; with --type alone later tasks of it follow')
  taken.option('--back', 'with --type: later tasks no longer follow, and those of this type come back')
  acts(filtered(taken, 'open').option('-n, --dry-run', 'only count'), move)
  acts(guarded(filtered(one('purge', 'remove tasks that nobody holds; leased and dead ones stay'), 'open')), purge)
}

/** Runs `work` on a queue that has to exist. */
const onQueue = (context: Context, name: unknown, work: (store: Store, queue: QueueRecord) => Promise<void>) =>
  withStore(context.url, { create: false }, async (store) => {
    await work(store, await queueNamed(store, name))
    return 0
  })

const shapeOf = ({ name, paused, createdAt }: QueueRecord) => ({
  queue: name,
  paused,
  createdAt: new Date(createdAt).toISOString(),
})

const list: Act = async ({ url, output }) =>
  withStore(url, { create: false }, async (store) => {
    const queues = (await store.engine.select('queue', {}, null)).items as unknown as QueueRecord[]
    const shapes = queues.map(shapeOf)
    if (output.json) for (const shape of shapes) await output.value(shape)
    else await output.result(table(['queue', 'paused', 'created at'], shapes.map(Object.values)))
    return 0
  })

const show: Act = (context, [name]) => onQueue(context, name, (store, queue) => told(context, store, queue))

async function told({ output }: Context, { connection }: Store, queue: QueueRecord): Promise<void> {
  const { policy, code, operator } = queue
  const routes = (await readRoutes(connection, queue.name)).map(({ type, to, toType }) => ({ type, to, toType }))
  if (output.json) return output.value({ ...shapeOf(queue), policy, code, operator, routes })
  const layers = [operator, code] as (Record<string, unknown> | null)[]
  const rows = Object.entries(policy).map(([field, value]) => {
    const from = ['operator', 'code'].find((_, index) => layers[index]?.[field] !== undefined) ?? 'default'
    return [field, value === null ? 'none' : oneLine(JSON.stringify(value)), from]
  })
  const led = routes.map(
    ({ type, to, toType }) => `\nnew tasks of ${oneLine(type)} go to ${oneLine(`${to}/${toType}`)}`,
  )
  const head = `${queue.name}${queue.paused ? ' (paused)' : ''}`
  await output.result(`${head}\n${table(['field', 'value', 'from'], rows)}${led.join('')}`)
}

/** A queue may get its policy before its first task. */
const setAct: Act = async (context, [name, settings], options) => {
  const queue = checkName('queue name', name)
  const patch = patchOf(settings as string[])
  return withStore(context.url, { create: false }, async (store) => {
    const others = await queueNames(store)
    await store.client.queue(queue).configure(patch, { force: options.force === true })
    context.output.did('the policy is set')
    if (!others.includes(queue)) tellNew(context, queue, others)
    await told(context, store, await queueNamed(store, queue))
    return 0
  })
}

/** A policy may come before the first task, and a mistyped name looks just the same. */
function tellNew({ output }: Context, queue: string, others: readonly string[]): void {
  const near = closest(queue, others)
  const hint = near === null ? '' : ` Did you mean ${JSON.stringify(near)}?`
  const text = `${JSON.stringify(queue)} is a new queue: nothing was ever enqueued there.${hint}`
  output.say(warningText(Object.assign(new Error(text), { code: 'PW_QUEUE_UNKNOWN' }), output.json))
}

const unset: Act = async (context, [name, given], options) => {
  const fields = fieldsOf(given as string[])
  return onQueue(context, name, async (store, { name: queue }) => {
    const layer = fields.length === 0 ? { operator: null } : { unset: fields }
    const patch = { ...layer, force: options.force === true }
    const { engine, connection } = store
    const record = (await engine.configure('queue', queue, patch, connection.actor)) as unknown as QueueRecord
    context.output.did('the policy is unset')
    await told(context, store, record)
  })
}

const paused = (value: boolean, ...[context, [name]]: Parameters<Act>) =>
  onQueue(context, name, async (store, { name: queue }) => {
    await (value ? store.client.queue(queue).pause() : store.client.queue(queue).resume())
    const { output } = context
    output.did(`${queue} is ${value ? 'paused' : 'resumed'}`)
    await (output.json
      ? output.value({ queue, paused: value })
      : output.result(`${queue} ${value ? 'paused' : 'resumed'}`))
  })

const move: Act = (context, [name], options) =>
  onQueue(context, name, async ({ connection }, { name: queue }) => {
    const { output } = context
    const dryRun = options.dryRun === true
    if ((options.to === undefined) === (options.back === undefined)) {
      throw new PieceworkError('PW_USAGE', 'queue move takes --to QUEUE, or --back with --type.')
    }
    const filter = filterOf(queue, options)
    const done = await (options.to === undefined
      ? moveBack(connection, queue, filter, dryRun)
      : moveTasks(connection, queue, filter, options.to, dryRun))
    if (!dryRun) output.did(`${done.moved} moved, ${done.asked} asked`)
    if (output.json) return output.value(dryRun ? { ...done, dryRun } : done)
    const later = done.asked === 0 ? '' : `, ${done.asked} when their delivery ends`
    const follow = done.routed ? '; later ones of this type follow' : ''
    await output.result(`${done.moved} ${dryRun ? 'would be moved' : 'moved'}${later}${follow}`)
  })

const purge: Act = (context, [name], options) =>
  onQueue(context, name, async (store, { name: queue }) => {
    const { output } = context
    const filter = filterOf(queue, options)
    refuseUnmeant('queue purge', filter, options)
    const there = await amendAll(store.connection, filter, { do: 'purge' }, true)
    const dryRun = options.dryRun === true
    if (!dryRun) await confirm(there.changed, `purge queue ${queue}`, options.yes === true)
    const { changed } = dryRun ? there : await amendAll(store.connection, filter, { do: 'purge' }, false)
    if (!dryRun) output.did(`${changed} purged`)
    if (output.json) await output.value(dryRun ? { purged: changed, dryRun } : { purged: changed })
    else await output.result(`${changed} ${dryRun ? 'would be purged' : 'purged'}`)
  })
