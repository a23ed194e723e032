// The life cycle's table as things that can be done: for each event the calls that may cause it, whatever the state.
import type { Change, Verdict } from '../../dist/engine/contract.js'
import { type LifeEvent, lifecycle } from '../../dist/task/lifecycle.js'
import { dedupName } from '../model/model.js'
import * as operators from '../model/operators.js'
import { heldBy } from '../model/verbs.js'
import type { Scene } from './scene.js'
import type { World } from './worlds.js'

/** One thing done to the store, or to what is around it. */
export type Move =
  | { do: 'enqueue'; offer: World['offers'][number] }
  | { do: 'claim'; slot: number; queue: string; max: number }
  | { do: 'settle'; verdicts: readonly Verdict[] }
  | { do: 'extend'; receipt: string }
  | { do: 'amend'; id: string; change: Change }
  | { do: 'kill'; slot: number }
  | { do: 'pass' | 'sweep' }
  /** Calls that the state leaves no room for, one after the other: none may change anything. */
  | { do: 'in vain'; moves: readonly Move[] }

type Causes = (scene: Scene, world: World) => Move[]

const tasksMax = 2
const error = { code: null, text: 'it failed' }
const time: Causes = () => [{ do: 'pass' }, { do: 'sweep' }]
/** The change on each task, also on those it must leave alone. */
const amend =
  (change: Change): Causes =>
  ({ model }) =>
    [...model.tasks.keys()].map((id) => ({ do: 'amend', id, change }))
/** The verdict for each receipt that acts or could have. */
const settle =
  (...endings: readonly Ending[]): Causes =>
  ({ model }) =>
    endings.flatMap((ending) =>
      [...model.tasks.values()].flatMap(({ hold }): Move[] =>
        hold === null ? [] : [{ do: 'settle', verdicts: [{ receipt: hold.text, ...ending }] }],
      ),
    )
type Without<T> = T extends unknown ? Omit<T, 'receipt'> : never
type Ending = Without<Verdict>

/** Each way to ask again for a task that has its dedup key. */
const again =
  (onDuplicate: 'replace' | 'delay'): Causes =>
  ({ model }, { offers }) =>
    offers
      .filter(({ dedupKey }) => dedupKey !== undefined && model.dedup.has(dedupName('q', dedupKey)))
      .filter(({ delayMs }) => onDuplicate === 'replace' || delayMs !== undefined)
      .map((offer) => ({ do: 'enqueue', offer: { ...offer, onDuplicate } }))

/** An event that the table gains has no entry here and does not compile. */
const causes: Record<LifeEvent, Causes> = {
  enqueue: ({ model }, { offers }) =>
    model.tasks.size < tasksMax ? offers.map((offer) => ({ do: 'enqueue', offer })) : [],
  // Whatever takes a key's slot away or brings a task to its key promotes.
  promote: () => [],
  claim: claims,
  extend: ({ model }) =>
    [...model.tasks.values()].flatMap(({ hold }): Move[] => (hold ? [{ do: 'extend', receipt: hold.text }] : [])),
  ack: settle({ do: 'ack' }),
  retry: settle({ do: 'retry', error }),
  release: (scene, world) => settle(...world.releases.map((how) => ({ do: 'release', ...how }) as const))(scene, world),
  bury: settle({ do: 'bury', error }),
  due: time,
  expire: time,
  deadline: time,
  die: ({ model, names }) => {
    const holds = (name: string) => {
      const worker = model.workers.get(name)
      return worker !== undefined && heldBy(model, worker).length > 0
    }
    const kills = names.flatMap((name, slot): Move[] => (holds(name) ? [{ do: 'kill', slot }] : []))
    return [...kills, { do: 'sweep' }]
  },
  cancel: amend({ do: 'cancel' }),
  purge: amend({ do: 'purge' }),
  redrive: amend({ do: 'redrive' }),
  discard: amend({ do: 'discard' }),
  edit: amend({ do: 'edit', payload: '"edited"' }),
  replace: again('replace'),
  delay: again('delay'),
  // Whatever ends a task's last delivery.
  deadTo: () => [],
  move: ({ model }) =>
    [...model.tasks.values()].map(({ id, queue }) => ({
      ...{ do: 'amend', id, change: { do: 'move', to: queue === 'q' ? 'other' : 'q' } },
    })),
}

/** Of one and of several, by every worker that differs from those before it in what it holds. */
function claims({ model, names }: Scene, world: World): Move[] {
  const idle = (name: string) => {
    const worker = model.workers.get(name)
    return ![...model.tasks.values()].some(({ hold }) => hold && hold.worker === worker)
  }
  const slots = names.map((_, slot) => slot).filter((slot) => slot < world.workers)
  const telling = slots.filter(
    (slot) => !slots.some((s) => s < slot && idle(names[s] ?? '') && idle(names[slot] ?? '')),
  )
  const queues = world.without.includes('move') && world.rules.deadTo === undefined ? ['q'] : ['q', 'other']
  const counts = model.tasks.size > 1 ? [1, 2] : [1]
  return telling.flatMap((slot) =>
    queues.flatMap((queue) => counts.map((max): Move => ({ do: 'claim', slot, queue, max }))),
  )
}

/** Receipts that were given out last and act no more: every verdict on them must change nothing. */
function stale({ model }: Scene): Move[] {
  const spent = [...model.receipts.keys()].filter((receipt) => model.heldUnder(receipt) === undefined).slice(-2)
  return spent.flatMap((receipt): Move[] => {
    const endings: Ending[] = [{ do: 'ack' }, { do: 'retry', error }, { do: 'release', by: 'stop' }]
    const all: Ending[] = [...endings, { do: 'bury', error }]
    return [
      { do: 'settle', verdicts: all.map((ending) => ({ receipt, ...ending })) },
      { do: 'extend', receipt },
    ]
  })
}

/** Everything that can be done here, each thing once; together what must change nothing. */
export function movesIn(scene: Scene, world: World): Move[] {
  const events = (Object.keys(lifecycle) as LifeEvent[]).filter((event) => !world.without.includes(event))
  const all = events.flatMap((event) => causes[event](scene, world))
  const each = [...new Map(all.map((move) => [JSON.stringify(move), move])).values()]
  const inVain = ({ model }: Scene, move: Move) =>
    move.do === 'amend' && operators.amend(model, { ids: [move.id] }, move.change, 1, true).ids.length === 0
  const vain = [...each.filter((move) => inVain(scene, move)), ...stale(scene)]
  const telling = each.filter((move) => !inVain(scene, move))
  return vain.length === 0 ? telling : [...telling, { do: 'in vain', moves: vain }]
}
