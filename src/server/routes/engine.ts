// The contract's verbs for our own library behind a wire: POST /v1/engine/{verb}, arguments and answer as JSON.
import * as v from 'valibot'
import type { Change, ClaimAsk, Filter, Kind, NewTask, Patch, Verdict, WorkerInfo } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { states } from '../../task/lifecycle.js'
import { payloadBytesMax } from '../../task/limits.js'
import type { Scope } from '../auth.js'
import { checked, type Schema, s } from '../check.js'
import { givingBack } from '../claims.js'
import type { Call, Reply, Route } from '../route.js'

const whole = s.whole(0, Number.MAX_SAFE_INTEGER)
/** Any text, as an engine trusts it to be: valid Unicode. */
const text = v.pipe(
  v.string(),
  v.check((value) => value.isWellFormed(), 'It holds a lone surrogate'),
)
const named = v.pipe(
  text,
  v.check((value) => value.length <= 200 || [...value].length <= 200, 'It has more than 200 characters'),
)
const mayBe = <S extends Schema>(schema: S) => v.optional(v.nullable(schema), null)
const large = v.pipe(
  text,
  v.maxLength(payloadBytesMax),
  v.check((value) => Buffer.byteLength(value) <= payloadBytesMax),
)
const errorText = v.strictObject({ code: v.nullable(named), text })

const newTask = v.strictObject({
  ...{ queue: named, type: v.optional(named), payload: large, headers: v.optional(large) },
  ...{ priority: v.optional(s.whole(-100, 100)), delayMs: v.optional(whole), dueAt: v.optional(v.number()) },
  ...{ deadlineMs: v.optional(whole), onDeadline: v.optional(v.picklist(['dead', 'drop'])) },
  ...{ key: v.optional(named), weight: v.optional(s.whole(1, 1_000_000)), dedupKey: v.optional(named) },
  ...{ onDuplicate: v.optional(v.picklist(['keep', 'replace', 'delay'])), batch: v.optional(named) },
  identity: v.optional(text),
  keepsResult: v.optional(v.boolean()),
})
/** Enqueued exactly once by the engine: nothing that may already stand for it. */
const followUp = v.omit(newTask, ['dedupKey', 'onDuplicate', 'identity'])
const want = v.strictObject({
  ...{ queue: named, types: v.nullable(v.array(named)), max: s.whole(0, 10_000), perKey: v.optional(whole) },
})
const verdict = v.variant('do', [
  v.strictObject({ receipt: text, do: v.literal('ack'), result: v.optional(large) }),
  v.strictObject({ receipt: text, do: v.literal('retry'), delayMs: v.optional(whole), error: errorText }),
  v.strictObject({
    ...{ receipt: text, do: v.literal('release'), delayMs: v.optional(whole), error: v.optional(errorText) },
    by: v.picklist(['stop', 'unstarted', 'handler', 'overloaded', 'counted']),
  }),
  v.strictObject({ receipt: text, do: v.literal('bury'), error: errorText }),
])
const info = v.strictObject({
  ...{ worker: named, host: text, pid: whole, bootId: text, queues: v.array(named), proof: v.nullable(text) },
  ...{ concurrency: whole, busy: whole, prefetched: whole },
})
const filter = v.strictObject({
  ...{ ids: v.optional(v.array(text)), queue: v.optional(named), type: v.optional(named), key: v.optional(named) },
  ...{ batch: v.optional(named), states: v.optional(v.array(v.picklist(states))), fingerprint: v.optional(text) },
  ...{ text: v.optional(text), name: v.optional(text), limit: v.optional(whole), sinceAt: v.optional(v.number()) },
})
const change = v.variant('do', [
  v.strictObject({ do: v.picklist(['cancel', 'purge', 'discard', 'redrive']) }),
  v.strictObject({ do: v.literal('edit'), payload: large }),
  v.strictObject({ do: v.literal('move'), to: named }),
])
const patch = v.nullable(
  v.looseObject({
    ...{ code: v.optional(v.record(text, v.unknown())), operator: mayBeRecord(), unset: v.optional(v.array(text)) },
    ...{
      paused: v.optional(v.boolean()),
      sealed: v.optional(v.literal(true)),
      followUp: v.optional(followUp),
      info: v.optional(v.record(text, v.unknown())),
    },
  }),
)
function mayBeRecord() {
  return v.optional(v.nullable(v.record(text, v.unknown())))
}
const kinds = [
  'queue',
  'batch',
  'limit',
  'schedule',
  'route',
  'token',
  'type',
  'task',
  'result',
  'history',
  'worker',
  'audit',
  'redelivered',
  'proof',
] as const
const token = v.strictObject({
  ...{ name: named, hash: v.pipe(text, v.length(43)), scopes: v.array(text), queues: v.array(text) },
  expiresAt: v.nullable(v.number()),
})

/** What the library sends as a schedule; when it fires is checked where it is kept. */
const scheduleTask = v.strictObject({
  ...{ payload: large, type: v.optional(named), key: v.optional(named), priority: v.optional(s.whole(-100, 100)) },
  ...{ deadlineMs: v.optional(whole), dedupKey: v.optional(named), headers: v.optional(large) },
})

const forbidden = (why: string) => new PieceworkError('PW_FORBIDDEN', `This token may not do that. ${why}`)

/** Throws PW_FORBIDDEN unless the caller has one of the scopes, and his queues cover all of these. */
function need({ who }: Call, scopes: readonly Scope[], queues: Iterable<string | undefined> = []): void {
  if (!who.may(...scopes)) throw forbidden(`It needs ${scopes.join(' or ')}.`)
  // What names no queue is about all of them, and '*' alone covers that.
  for (const queue of queues) if (!who.covers(queue ?? '\0')) throw forbidden('Its queues do not cover this.')
}

type Verb = (call: Call, body: never) => Promise<unknown>
const readers = ['produce', 'work', 'operate'] as const
const selectScopes: Partial<Record<Kind, readonly Scope[]>> = {
  ...{ queue: readers, batch: readers, schedule: ['produce', 'operate'], audit: ['admin'], token: ['admin'] },
}
/** Rows of the other kinds belong to no queue that a glob could cover, or to several. */
const ofQueues: readonly Kind[] = ['queue', 'batch', 'task', 'result', 'schedule', 'route', 'redelivered']

async function enqueue(call: Call, { requestId, tasks }: { requestId: string | null; tasks: NewTask[] }) {
  need(call, ['produce'], new Set(tasks.map(({ queue }) => queue)))
  return call.broker.engine.enqueue(requestId, tasks)
}

async function claim(call: Call, ask: ClaimAsk): Promise<Reply> {
  need(call, ['work'], new Set(ask.wants.map(({ queue }) => queue)))
  const { engine, names } = call.broker
  const { worker, requestId } = ask
  // The very call was sent before: it hears again what it was given, and takes nothing its sender may not wait for.
  const named = call.key === null ? null : names.asked(`call ${call.key}`)
  const asked = names.asked(`claim ${worker.length} ${worker} ${requestId ?? call.key}`)
  const claimed = await engine.claim(named?.again ? { ...ask, wants: [] } : ask)
  const undelivered = givingBack(call.broker, worker, claimed.deliveries, asked.last)
  if (claimed.deliveries.length > 0 || named === null) return { body: claimed, undelivered }
  // The store keeps no empty answer: why it was empty, and until when, would be lost with the first.
  if (!named.again) named.say(claimed)
  return { body: named.said() ?? claimed, undelivered }
}

async function worker(call: Call, { event, info }: { event: 'join' | 'beat' | 'leave'; info: WorkerInfo }) {
  need(call, ['work'], info.queues)
  // Its process is none that this machine could see the end of.
  return call.broker.engine.worker(event, { ...info, bootId: '', proof: null })
}

async function configure(call: Call, body: { kind: Kind; name: string; patch: Patch | null; actor: string }) {
  const { kind, name, patch } = body
  const byCode = kind === 'queue' && patch !== null && Object.keys(patch).every((field) => field === 'code')
  const producing = (kind === 'batch' || kind === 'schedule') && patch !== null
  const following = kind === 'batch' ? (patch?.followUp as NewTask | undefined) : undefined
  if (following !== undefined) need(call, ['produce'], [following.queue])
  if (kind === 'token' && patch !== null) checked(token, patch, 'The token')
  if (kind === 'route' && patch !== null) need(call, ['operate'], [String(patch.to)])
  if (kind === 'schedule' && patch !== null) checked(scheduleTask, patch.task, 'The task')
  if (kind === 'token') need(call, ['admin'])
  else
    need(call, byCode ? ['work', 'operate'] : producing ? ['produce', 'operate'] : ['operate'], [
      name.split('\0', 1)[0],
      ...(kind === 'queue' ? takersOf(patch) : []),
    ])
  const answer = await call.broker.engine.configure(kind, name, patch, actorOf(call, body.actor))
  if (kind === 'token') call.broker.doors.changed()
  return open(call, kind, answer)
}

/** The queues that would get the dead of this one as tasks: a way into them. */
const takersOf = (patch: Patch | null): string[] =>
  [patch?.code, patch?.operator].flatMap((layer) => {
    const { deadTo } = (layer ?? {}) as Patch
    return typeof deadTo === 'string' ? [deadTo] : []
  })

/** Who a remote program says it is, with the token that let it say so. */
const actorOf = ({ who }: Call, actor: string) => (who.name === null ? actor : `${actor}, ${who.actor}`)

async function select(call: Call, body: { kind: Kind; filter: Filter; cursor: string | null }) {
  const { kind, filter, cursor } = body
  const whole = !ofQueues.includes(kind)
  need(call, selectScopes[kind] ?? ['operate'], whole ? [undefined] : [])
  const { items, next } = await call.broker.engine.select(kind, filter, cursor)
  const mine = items.filter((row) => whole || call.who.covers(String(row.queue ?? row.name)))
  return { items: mine.map((row) => open(call, kind, row)), next }
}

/** Without read-payload a task's own texts are missing; nobody needs the print of a token. */
function open({ who }: Call, kind: Kind, row: Record<string, unknown>): Record<string, unknown> {
  if (kind === 'token') return { ...row, hash: '' }
  if (who.may('read-payload')) return row
  if (kind === 'schedule') return { ...row, task: { ...(row.task as object), payload: 'null', headers: undefined } }
  if (kind === 'result') return { ...row, result: null }
  if (kind !== 'task') return row
  return { ...row, payload: '', headers: null, progress: null }
}

type Amend = { filter: Filter; change: Change; actor: string; bounds: { max: number; dryRun: boolean } }
async function amend(call: Call, { filter, change, actor, bounds }: Amend) {
  need(call, ['operate'], [filter.queue, ...(change.do === 'move' ? [change.to] : [])])
  return call.broker.engine.amend(filter, change, actorOf(call, actor), bounds)
}

async function measure(call: Call, { queues, durable }: { queues: string[] | null; durable: boolean }) {
  need(call, readers)
  const { at, types, workers } = await call.broker.engine.measure(queues, durable)
  const covers = (queue: string) => call.who.covers(queue)
  return {
    at,
    types: types.filter(({ queue }) => covers(queue)),
    workers: workers.filter((worker) => worker.queues.some(covers)),
  }
}

async function wait({ broker, ending, ...call }: Call, { queues, ms }: { queues: string[]; ms: number }) {
  need({ broker, ending, ...call }, ['work'], queues)
  if (!broker.roomToWait) throw new PieceworkError('PW_SERVER_BUSY', 'Too many clients wait already.')
  broker.meter.waiting++
  try {
    return await broker.engine.wait(queues, ms, ending)
  } finally {
    broker.meter.waiting--
  }
}

interface Row {
  body: Schema
  /** The broker remembers the answer under the call's name for a minute; the others are repeatable by themselves. */
  named?: true
  run: Verb
}

const strict = v.strictObject
const actor = text
const verbs: Record<string, Row> = {
  open: { body: strict({}), run: async ({ broker }: Call) => ({ version: broker.version }) },
  enqueue: { body: strict({ requestId: mayBe(text), tasks: v.array(newTask) }), run: enqueue },
  claim: {
    body: strict({ worker: named, requestId: mayBe(text), wants: v.array(want), leaseMs: v.optional(whole) }),
    run: claim,
  },
  settle: {
    body: strict({ worker: named, flush: mayBe(text), verdicts: v.array(verdict) }),
    run: async (call, { worker, flush, verdicts }: { worker: string; flush: string | null; verdicts: Verdict[] }) => {
      need(call, ['work'])
      return call.broker.engine.settle({ worker, flush }, verdicts)
    },
  },
  extend: {
    body: strict({
      worker: named,
      asks: v.array(strict({ receipt: text, leaseMs: whole, progress: v.optional(large) })),
    }),
    named: true,
    run: async (call, { worker, asks }: { worker: string; asks: { receipt: string; leaseMs: number }[] }) => {
      need(call, ['work'])
      return call.broker.engine.extend(worker, asks)
    },
  },
  worker: { body: strict({ event: v.picklist(['join', 'beat', 'leave']), info }), named: true, run: worker },
  sweep: {
    body: strict({ max: whole }),
    named: true,
    run: async (call, { max }: { max: number }) => {
      need(call, ['work', 'operate'])
      return call.broker.engine.sweep(max)
    },
  },
  wait: { body: strict({ queues: v.array(named), ms: s.whole(0, 20_000) }), run: wait },
  configure: {
    body: strict({
      ...{ kind: v.picklist(kinds), name: v.pipe(text, v.minLength(1)) },
      ...{ patch, actor },
    }),
    named: true,
    run: configure,
  },
  select: { body: strict({ kind: v.picklist(kinds), filter, cursor: v.nullable(text) }), run: select },
  amend: {
    body: strict({ filter, change, actor, bounds: strict({ max: whole, dryRun: v.boolean() }) }),
    named: true,
    run: amend,
  },
  measure: { body: strict({ queues: v.nullable(v.array(text)), durable: v.boolean() }), run: measure },
  migrate: {
    body: strict({ dryRun: v.boolean() }),
    named: true,
    run: async (call, { dryRun }: { dryRun: boolean }) => {
      need(call, ['admin'])
      return call.broker.engine.migrate(dryRun)
    },
  },
}

const anyScope = ['produce', 'work', 'operate', 'read-payload'] as const

export const engineRoutes: readonly Route[] = Object.entries(verbs).map(
  ([verb, { body, named, run }]): Route => ({
    method: 'POST',
    path: `/v1/engine/${verb}`,
    scope: anyScope,
    summary: `The contract's ${verb}, for the piecework library`,
    body,
    keyed: true,
    answers: { 200: v.unknown() },
    handle: async (call) => {
      const act = () => run(call, call.body as never)
      if (verb === 'claim') return (await act()) as Reply
      // Beats come by the thousand and are repeatable; what they say is old when they are sent again.
      const name =
        named && (call.body as { event?: string }).event !== 'beat' ? call.key && `${verb} ${call.key}` : null
      return { body: await call.broker.names.once(name, act) }
    },
  }),
)
