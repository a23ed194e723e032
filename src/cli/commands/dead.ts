// `piecework dead`: looks at dead letters, sends them on their way again, or discards them.
import type { Command } from 'commander'
import type { Filter } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { amendAll } from '../../queue/amend.js'
import { errorGroups, groupsMax } from '../../queue/groups.js'
import { redrive } from '../../queue/redrive.js'
import { bulkTasksMax } from '../../task/limits.js'
import { checkPayloadText } from '../../task/payload.js'
import type { TaskRecord } from '../../task/records.js'
import { confirm } from '../confirm.js'
import { filtered, filterOf, guarded, refuseUnmeant } from '../filters.js'
import { type Looks, limited, listTasks } from '../listing.js'
import { historyOf, queueNamed, taskNamed } from '../names.js'
import { counted, isoOf, oneLine, table } from '../print.js'
import { type Act, acts } from '../program.js'
import { jsonWith } from '../raw.js'
import { type Store, withStore } from '../store.js'
import { whole } from '../values.js'

export function deadCommand(program: Command): void {
  const dead = program.command('dead').description('look at dead letters, redrive or discard them')
  const queue = (name: string, summary: string) =>
    dead.command(name).description(summary).argument('[queue]', 'the queue (default: all)')
  const list = queue('list', 'list dead letters, the oldest task first')
  acts(limited(filtered(list, 'dead')), listAct)
  const show = dead.command('show').description('show one dead letter with the history of its deliveries')
  acts(show.argument('<queue-or-id>').argument('[id]'), showAct)
  acts(queue('groups', 'the kinds of errors among dead letters, the most frequent first'), groupsAct)
  const edit = dead.command('edit').description('give a dead letter another payload; redrive it afterwards')
  acts(edit.argument('<id>').argument('<json>'), editAct)
  const redrive = queue('redrive', 'make dead letters ready again, with a new budget of deliveries')
  const paced = redrive
    .option('--per-second <n>', 'so many a second, not all at once')
    .option('--canary <n>', 'so many first; the rest only when each of them was done at its next delivery')
  acts(guarded(filtered(paced, 'dead')), redriveAct)
  const discard = queue('discard', 'remove dead letters for good; the audit keeps who did it')
  acts(guarded(filtered(discard, 'dead')), discardAct)
}

/** One line of `dead list --json`. */
function deadLine(row: TaskRecord): string {
  const { id, queue, type, key, number, reason, error, deadAt } = row
  const shape = { id, queue, type, key, deliveries: number, reason, error, deadAt: isoOf(deadAt) }
  return jsonWith(shape, 'payload', row.payload)
}

const firstLine = (text: string | null) => (text === null ? null : oneLine(text.split('\n', 1)[0] ?? '').slice(0, 100))

const looks: Looks = {
  head: ['id', 'queue', 'deliveries', 'reason', 'dead at', 'error', 'payload'],
  cells: ({ id, queue, number, reason, deadAt, error, payload }) => {
    return [id, queue, number, reason, isoOf(deadAt), firstLine(error), oneLine(payload).slice(0, 60)]
  },
  line: deadLine,
}

const listAct: Act = async ({ url, output }, [word], options) =>
  withStore(url, { create: false }, async (store) => {
    const queue = word === undefined ? null : (await queueNamed(store, word)).name
    await listTasks(store, { ...filterOf(queue, options), states: ['dead'] }, options, output, looks)
    return 0
  })

const showAct: Act = async ({ url, output }, [first, second], _options) =>
  withStore(url, { create: false }, async (store) => {
    const queue = second === undefined ? null : (await queueNamed(store, first)).name
    const id = String(second ?? first)
    const row = deadOne(await taskNamed(store, id, queue))
    const history = await historyOf(store, row.id)
    const { batch, code, fingerprint, enqueuedAt } = row
    const more = { batch, code, fingerprint, enqueuedAt: isoOf(enqueuedAt), history }
    if (output.json) await output.result(jsonWith({ ...JSON.parse(deadLine(row)), ...more }, 'payload', row.payload))
    else await output.result(letterOf(row, history))
    return 0
  })

function letterOf(row: TaskRecord, history: { [column: string]: unknown }[]): string {
  const facts = [
    ['task', row.id],
    ['queue', row.queue],
    ['type', row.type],
    ['key', row.key],
    ['batch', row.batch],
    ['reason', row.reason],
    ['code', row.code],
    ['dead at', isoOf(row.deadAt)],
    ['payload', oneLine(row.payload)],
  ]
  const lines = facts.flatMap(([name, value]) => (value == null ? [] : [`${String(name).padEnd(8)} ${value}`]))
  const rows = history.map(({ number, outcome, worker, endedAt, error }) => [
    number,
    outcome,
    worker,
    endedAt,
    firstLine(error as string | null),
  ])
  if (rows.length > 0) lines.push('', table(['delivery', 'outcome', 'worker', 'ended at', 'error'], rows))
  if (row.error !== null) lines.push('', ...row.error.split('\n').map(oneLine))
  return lines.join('\n')
}

const groupsAct: Act = async ({ url, output }, [word]) =>
  withStore(url, { create: false }, async (store) => {
    const filter = word === undefined ? {} : { queue: (await queueNamed(store, word)).name }
    const groups = await errorGroups(store.connection, filter)
    if (output.json) {
      for (const group of groups) await output.value(group)
      return 0
    }
    const cells = groups.map(({ fingerprint, count, error, example }) => [fingerprint, count, oneLine(error), example])
    await output.result(table(['fingerprint', 'count', 'error', 'for example'], cells))
    const tasks = groups.reduce((sum, { count }) => sum + count, 0)
    const errors = counted(groups.length, 'distinct error')
    output.say(`${groups.length < groupsMax ? '' : 'at least '}${counted(tasks, 'task')}, ${errors}`)
    return 0
  })

const editAct: Act = async ({ url, output }, [id, json]) => {
  const payload = checkPayloadText(String(json))
  return withStore(url, { create: false }, async (store) => {
    const row = deadOne(await taskNamed(store, String(id), null))
    const { engine, connection } = store
    await engine.amend({ ids: [row.id] }, { do: 'edit', payload }, connection.actor, { max: 1, dryRun: false })
    output.did(`${row.id} is edited`)
    await (output.json ? output.value({ id: row.id, edited: true }) : output.result(`${row.id} edited`))
    return 0
  })
}

function deadOne(row: TaskRecord): TaskRecord {
  if (row.state === 'dead') return row
  throw new PieceworkError('PW_TASK_GONE', `Task ${row.id} is not dead: it is ${row.state}.`, { id: row.id })
}

/** The filter of a change to dead letters, once somebody has said that this many are meant. */
async function meant(kind: string, store: Store, word: unknown, options: Options): Promise<Filter> {
  const queue = word === undefined ? null : (await queueNamed(store, word)).name
  const filter = { ...filterOf(queue, options), states: ['dead'] as const }
  refuseUnmeant(`dead ${kind}`, filter, options)
  if (options.dryRun === true) return filter
  const { changed } = await amendAll(store.connection, filter, { do: 'discard' }, true)
  await confirm(changed, `${kind} dead letters${queue === null ? '' : ` of queue ${queue}`}`, options.yes === true)
  return filter
}

type Options = Record<string, unknown>

const discardAct: Act = ({ url, output }, [word], options) =>
  withStore(url, { create: false }, async (store) => {
    const filter = await meant('discard', store, word, options)
    const dryRun = options.dryRun === true
    const { changed } = await amendAll(store.connection, filter, { do: 'discard' }, dryRun)
    if (!dryRun) output.did(`${changed} discarded`)
    if (output.json) await output.value(dryRun ? { discarded: changed, dryRun } : { discarded: changed })
    else await output.result(`${changed} ${dryRun ? 'would be ' : ''}discarded`)
    return 0
  })

const redriveAct: Act = ({ url, output }, [word], options) => {
  const number = (name: string, text: unknown, max: number) =>
    text === undefined ? undefined : whole(name, String(text), 1, max)
  const perSecond = number('--per-second', options.perSecond, 1_000_000)
  const canary = number('--canary', options.canary, bulkTasksMax)
  return withStore(url, { create: false }, async (store) => {
    const filter = await meant('redrive', store, word, options)
    const dryRun = options.dryRun === true
    const waits = canary !== undefined && !dryRun
    if (waits) output.say(`Waiting for what becomes of the first ${canary}; the others stay dead until then.`)
    const done = await redrive(store.connection, filter, { perSecond, canary, dryRun })
    if (!dryRun) output.did(`${done.redriven} redriven`)
    if (output.json) await output.value(dryRun ? { ...done, dryRun } : done)
    else await output.result(`${done.redriven} ${dryRun ? 'would be ' : ''}redriven`)
    if (!done.failed) return 0
    output.say(`${done.failed} of them failed again, so the others were left dead: piecework dead list shows why.`)
    return 1
  })
}
