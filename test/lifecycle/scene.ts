// Where the walk stands: the model, who lives, what time it is; and by what one such place is told from another.

import type { LifeEvent, State } from '../../dist/task/lifecycle.js'
import { byId, Model, type ModelTask } from '../model/model.js'
import { unitMs } from './worlds.js'

export interface Scene {
  model: Model
  /** Of each slot: the worker that has it now. */
  names: readonly string[]
  /** Workers whose process is gone and whom no sweep has found yet. */
  dead: readonly string[]
}

/** A model that notes each step of the table it takes. */
export class Noted extends Model {
  note = (_step: string): void => {}

  override step(task: ModelTask, event: LifeEvent, to: State | null, from: State | null = task.state, into = task) {
    this.note(`${event}: ${from} -> ${to}`)
    super.step(task, event, to, from, into)
  }
}

/** Another model in the same state. */
export function copyOf(model: Model, note: (step: string) => void): Noted {
  const { now, wallShift, tasks, counts, paused, dedup, batches, workers, receipts } = model
  const copy = new Noted(model.rules)
  // In one go: a task's worker and the one in the list of workers are the same.
  const whole = structuredClone({ now, wallShift, tasks, counts, paused, dedup, batches, workers, receipts })
  return Object.assign(copy, whole, { note })
}

/**
 * What of a scene decides about all that may follow. Ids, names, totals and whole instants do not: only what is over,
 * what comes first, and who is who.
 */
export function keyOf({ model, dead }: Scene): string {
  const tasks = [...model.tasks.values()].sort((a, b) => a.place - b.place || byId(a, b))
  const workers: unknown[] = []
  const inUnits = (at: number | null) => (at === null ? null : Math.max(0, Math.ceil((at - model.now) / unitMs)))
  const holding = ({ hold }: ModelTask) => {
    if (hold === null || hold.kind === 'lapsed by death') return hold?.kind ?? null
    if (!workers.includes(hold.worker)) workers.push(hold.worker)
    const { name } = hold.worker
    const known = model.workers.get(name) === hold.worker
    return [hold.kind, workers.indexOf(hold.worker), known ? dead.includes(name) : 'forgotten']
  }
  const byDue = [...tasks].sort((a, b) => a.dueAt - b.dueAt || byId(a, b))
  return JSON.stringify(
    tasks.map((task) => {
      const { state, queue, key, slot, cancelAsked, moveTo, drops, deadlineAt, spent, releases, deaths } = task
      const { dedupKey } = task
      if (state === 'dead') return [state, queue, key, slot, dedupKey]
      const order = key === null ? null : byDue.indexOf(task)
      const budget = [spent, releases, (model.rulesOf(queue).deliveriesMax ?? 0) > 2 ? deaths : null]
      return [
        ...[state, queue, key, slot, order, cancelAsked, moveTo, drops, inUnits(deadlineAt), inUnits(task.wakeAt)],
        ...[budget, holding(task), dedupKey],
      ]
    }),
  )
}
