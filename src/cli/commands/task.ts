// `piecework task`: lists tasks, shows one, cancels some.
import type { Command } from 'commander'
import type { Filter } from '../../engine/contract.js'
import { amendAll } from '../../queue/amend.js'
import type { TaskRecord } from '../../task/records.js'
import { confirm } from '../confirm.js'
import { filtered, filterOf, guarded, refuseUnmeant } from '../filters.js'
import { type Looks, limited, listTasks } from '../listing.js'
import { historyOf, queueNamed, taskNamed } from '../names.js'
import { isoOf, oneLine } from '../print.js'
import { type Act, acts } from '../program.js'
import { jsonWith } from '../raw.js'
import { withStore } from '../store.js'

export function taskCommand(program: Command): void {
  const task = program.command('task').description('list tasks, show one, cancel some')
  const list = task.command('list').description('list tasks, the oldest first').argument('[queue]', 'default: all')
  acts(limited(filtered(list, 'open')), listAct)
  acts(task.command('show').description('show one task with the history of its deliveries').argument('<id>'), showAct)
  const cancel = task.command('cancel').description('end tasks; one that runs is asked to end').argument('<queue>')
  acts(guarded(filtered(cancel, 'open')), cancelAct)
}

/** A task for programs: instants as text, the payload as it was written. */
function shapeOf(row: TaskRecord): Record<string, unknown> {
  const { payload: _, place: _place, fence: _fence, spent: _spent, number, progress, headers, ...rest } = row
  return {
    ...rest,
    deliveries: number,
    enqueuedAt: isoOf(row.enqueuedAt),
    dueAt: isoOf(row.dueAt),
    deadlineAt: isoOf(row.deadlineAt),
    leaseEndsAt: isoOf(row.leaseEndsAt),
    deadAt: isoOf(row.deadAt),
    progress: progress === null ? null : JSON.parse(progress),
    headers: headers === null ? {} : JSON.parse(headers),
  }
}

const looks: Looks = {
  head: ['id', 'queue', 'type', 'state', 'deliveries', 'key', 'payload'],
  cells: ({ id, queue, type, state, number, key, payload }) => {
    return [id, queue, type, state, number, key, oneLine(payload).slice(0, 80)]
  },
  line: (row) => jsonWith(shapeOf(row), 'payload', row.payload),
}

const listAct: Act = async ({ url, output }, [name], options) =>
  withStore(url, { create: false }, async (store) => {
    const queue = name === undefined ? null : (await queueNamed(store, name)).name
    await listTasks(store, filterOf(queue, options), options, output, looks)
    return 0
  })

const showAct: Act = async ({ url, output }, [id]) =>
  withStore(url, { create: false }, async (store) => {
    const row = await taskNamed(store, String(id), null)
    const history = await historyOf(store, row.id)
    const shape = { ...shapeOf(row), history }
    if (output.json) await output.result(jsonWith(shape, 'payload', row.payload))
    else {
      const facts = Object.entries({ ...shape, payload: row.payload }).filter(
        ([, value]) => value != null && value !== '',
      )
      const lines = facts.map(([name, value]) => {
        return `${name.padEnd(12)} ${oneLine(typeof value === 'string' ? value : JSON.stringify(value))}`
      })
      await output.result(lines.join('\n'))
    }
    return 0
  })

const cancelAct: Act = async ({ url, output }, [name], options) =>
  withStore(url, { create: false }, async (store) => {
    const queue = (await queueNamed(store, name)).name
    const given = filterOf(queue, options)
    refuseUnmeant('task cancel', given, options)
    const filter: Filter = { ...given, states: given.states ?? ['scheduled', 'waiting', 'ready', 'leased'] }
    const { connection } = store
    const dryRun = options.dryRun === true
    const there = await amendAll(connection, filter, { do: 'cancel' }, true)
    const asks = options.all === true ? 'all' : 'people'
    // One task that was named is meant.
    const count = there.changed + there.asked
    if (!dryRun && count > 1) await confirm(count, `cancel tasks of queue ${queue}`, options.yes === true, asks)
    const { changed, asked } = dryRun ? there : await amendAll(connection, filter, { do: 'cancel' }, false)
    const answer = { cancelled: changed, asked }
    if (!dryRun) output.did(`${changed} cancelled, ${asked} asked to end`)
    if (output.json) await output.value(dryRun ? { ...answer, dryRun } : answer)
    else if (dryRun) await output.result(`${changed} would be cancelled, ${asked} asked to end`)
    else await output.result(`${changed} cancelled, ${asked} asked to end`)
    return 0
  })
