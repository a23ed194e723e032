// What the stream of events tells of a call and of its answer: what the laws look at, without texts that vary.
import type { ClaimAsk, Claimed, Enqueued, NewTask, Verdict } from '../../dist/engine/contract.js'
import type { Answer, Asked } from './events.js'
import type { Verb } from './store.js'

export function askTold(verb: Verb, args: readonly unknown[]): Asked {
  switch (verb) {
    case 'enqueue':
      return { verb, request: args[0] as string | null, tasks: (args[1] as NewTask[]).map(taskTold) }
    case 'claim': {
      const { worker, requestId, wants } = args[0] as ClaimAsk
      const { queue = '', max = 0, types = null } = wants[0] ?? {}
      return { verb, queue, worker, request: requestId, max, types }
    }
    case 'settle': {
      const { worker, flush } = args[0] as { worker: string; flush: string | null }
      return { verb, worker, request: flush, verdicts: (args[1] as Verdict[]).map(verdictTold) }
    }
    case 'extend': {
      const asks = args[1] as { receipt: string; leaseMs: number }[]
      const receipts = asks.map(({ receipt }) => receipt)
      return { verb, worker: args[0] as string, receipts, leaseMs: asks.map(({ leaseMs }) => leaseMs) }
    }
    case 'worker':
      return { verb, worker: (args[1] as { worker: string }).worker, event: args[0] as 'join' | 'beat' | 'leave' }
    case 'sweep':
      return { verb }
    case 'configure':
      return configureTold(String(args[0]), String(args[1]), (args[2] ?? {}) as Record<string, unknown>)
    case 'amend':
      return { verb, change: (args[1] as { do: string }).do, ids: (args[0] as { ids?: string[] }).ids ?? null }
  }
}

function configureTold(kind: string, name: string, { sealed, followUp }: Record<string, unknown>): Asked {
  const task = kind === 'batch' ? (followUp as NewTask | undefined) : undefined
  const follows = task === undefined ? null : { item: itemOf(task.payload), place: task.batch ?? null }
  return { verb: 'configure', kind, name, seals: sealed === true, follows }
}

const itemOf = (payload: string): number => (JSON.parse(payload) as { item: number }).item

const taskTold = ({ payload, type, queue, key, priority, delayMs, dueAt, dedupKey, onDuplicate }: NewTask) => ({
  item: itemOf(payload),
  queue,
  type: type ?? queue,
  key: key ?? null,
  priority: priority ?? 0,
  delayMs: delayMs ?? 0,
  dedupKey: dedupKey ?? null,
  onDuplicate: onDuplicate ?? 'keep',
  dueNamed: delayMs !== undefined || dueAt !== undefined,
})

const verdictTold = (verdict: Verdict) => ({
  receipt: verdict.receipt,
  do: verdict.do,
  by: verdict.do === 'release' ? verdict.by : null,
  delayMs: 'delayMs' in verdict ? (verdict.delayMs ?? null) : null,
})

export function answerTold(verb: Verb, answer: unknown): Answer {
  switch (verb) {
    case 'enqueue': {
      const rows = answer as Enqueued[]
      return { verb, ids: rows.map(({ id }) => id), duplicates: rows.map(({ duplicate }) => duplicate) }
    }
    case 'claim':
      return {
        verb,
        deliveries: (answer as Claimed).deliveries.map(({ receipt, id, number, fence }) => ({
          ...{ receipt, id, number, fence },
        })),
      }
    case 'settle':
      return { verb, outcomes: answer as string[] }
    case 'extend':
      return { verb, held: answer as string[] }
    default:
      return { verb }
  }
}
