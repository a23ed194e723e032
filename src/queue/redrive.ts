// Sends dead letters on their way again: all at once, at a rate, or a few first whose fate decides about the rest.
import type { Filter } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { bulkTasksMax, checkWhole, shown } from '../task/limits.js'
import type { TaskRecord } from '../task/records.js'
import { amendAll, amendPage } from './amend.js'
import type { Acting } from './connection.js'
import { waitFor } from './drained.js'

export interface RedriveOptions {
  /** So many a second at most, 1 … 1 000 000; default: as fast as they go. Resolves after the last one. */
  perSecond?: number | undefined
  /** So many first, 1 … 1000; the rest stays dead unless the next delivery of each of them ends well. */
  canary?: number | undefined
  /** Only counts. */
  dryRun?: boolean | undefined
}

export interface Redriven {
  redriven: number
  /** With `canary`: how many of the first failed again; above 0 the rest was left alone. */
  failed?: number
}

/** Throws PW_OPTION_INVALID for a rate or a number that makes no sense. */
export function checkRedrive({ perSecond, canary, dryRun }: RedriveOptions): void {
  if (dryRun !== undefined && typeof dryRun !== 'boolean') {
    throw new PieceworkError('PW_OPTION_INVALID', `dryRun is ${shown(dryRun)}; it must be true or false.`)
  }
  if (perSecond !== undefined) checkWhole('perSecond', perSecond, 1, 1_000_000)
  if (canary !== undefined) checkWhole('canary', canary, 1, bulkTasksMax)
}

/** Redrives the dead letters that the filter picks; waits for workers when a canary is asked for. */
export async function redrive(connection: Acting, filter: Filter, options: RedriveOptions): Promise<Redriven> {
  const { perSecond, canary, dryRun = false } = options
  const change = { do: 'redrive' } as const
  const dead = { ...filter, states: ['dead'] as const }
  await refuseLiving(connection, filter)
  if (dryRun || (perSecond === undefined && canary === undefined)) {
    return { redriven: (await amendAll(connection, dead, change, dryRun)).changed }
  }
  let redriven = 0
  if (canary !== undefined) {
    const { ids } = await amendPage(connection, { ...dead, limit: canary }, change, null)
    redriven = ids.length
    const failed = await failures(connection, ids)
    if (failed > 0 || ids.length < canary) return { redriven, failed }
  }
  const { clock } = connection.ports
  const limit = perSecond === undefined ? bulkTasksMax : Math.min(bulkTasksMax, Math.ceil(perSecond / 10))
  const beganMs = clock.monotonicMs()
  let sent = 0
  for (let cursor: string | null = null; ; ) {
    const page = await amendPage(connection, { ...dead, limit }, change, cursor)
    sent += page.ids.length
    if (page.next === null) break
    cursor = page.next
    if (perSecond !== undefined) await pause(clock, beganMs + (sent / perSecond) * 1000 - clock.monotonicMs())
  }
  redriven += sent
  return canary === undefined ? { redriven } : { redriven, failed: 0 }
}

/** Throws PW_TASK_NOT_DEAD for a task that was named and is alive: whoever names it takes it for dead. */
export async function refuseLiving(connection: Acting, { ids, queue }: Filter): Promise<void> {
  for (let from = 0; from < (ids?.length ?? 0); from += bulkTasksMax) {
    const some = ids?.slice(from, from + bulkTasksMax)
    const { items } = await connection.engine().select('task', { ids: some, queue, limit: bulkTasksMax }, null)
    const alive = (items as unknown as TaskRecord[]).find(({ state }) => state !== 'dead')
    if (alive === undefined) continue
    const text = `Task ${alive.id} is not dead: it is ${alive.state}.`
    throw new PieceworkError('PW_TASK_NOT_DEAD', text, { id: alive.id, state: alive.state })
  }
}

/** Waits until the next delivery of each of these has ended; answers how many ended otherwise than well. */
function failures(connection: Acting, ids: readonly string[]): Promise<number> {
  const look = async () => {
    const { items } = await connection.engine().select('task', { ids, limit: bulkTasksMax }, null)
    const left = items as unknown as TaskRecord[]
    // Spent and no longer in anybody's hands: it failed. A release spends nothing, so it decides nothing.
    const failed = left.filter(({ state, spent }) => state === 'dead' || (spent > 0 && state !== 'leased'))
    return left.length === failed.length ? failed.length : undefined
  }
  return waitFor(connection, {}, look, () => {
    throw new Error('it waits without an end')
  })
}
