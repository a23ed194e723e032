// What a law is: a name, the promise in one sentence, and a watcher that looks at one run event by event.
import type { SimEvent } from '../events.js'
import type { Plan } from '../plan.js'
import type { Change, World } from './world.js'

export interface Watcher {
  /** A change of a task's row, with its meaning; the world is as it was before. */
  change?(change: Change, world: World): Iterable<string>
  /** Any event; the world is as it was before. */
  see?(event: SimEvent, world: World): Iterable<string>
  /** The run is over. */
  end?(world: World): Iterable<string>
}

export interface Law {
  readonly name: string
  readonly promise: string
  /** `looked` is called once for each thing that the law really judged. */
  watch(plan: Plan, looked: () => void): Watcher
}

export interface Violation {
  law: string
  text: string
  /** Which event of the run showed it. */
  event: number
}
