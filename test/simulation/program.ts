// One simulated process: the real client with one worker, whose handlers do what the payload's script says.

import { pause } from '../../dist/ground/clock.js'
import type { TaskOptions } from '../../dist/queue/options.js'
import type { Delivery } from '../../dist/task/handler.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { Dice } from './dice.js'
import type { Happening } from './events.js'
import type { House } from './house.js'
import { Line, type Weather } from './line.js'
import type { Item, Plan, Script } from './plan.js'
import { Owner, type Scheduler } from './scheduler.js'
import type { Store } from './store.js'

export const queueName = 'q'
/** Takes the dead of the other, where a plan says so. */
export const deadName = 'r'
export const beatName = 'beat'

/** The schedule's task: quick work that succeeds. */
export const beatTask = { item: -1, script: { ms: 5, how: 'ack', times: 1, deaf: false } } as const

export interface ProgramPorts {
  readonly house: House
  readonly scheduler: Scheduler
  readonly store: Store
  readonly air: Owner
  readonly spec: Plan['processes'][number]
  readonly deadTo: boolean
  readonly weather: Weather
  readonly seed: number
  /** The schedule that this program has in its code. */
  readonly beat: { everyMs: number; dueAt: number; missed: 'latest' | 'skip' | 'all' } | null
  readonly tell: (happening: Happening) => void
  /** A handler that kills its process. */
  readonly suicide: (task: string) => void
}

const payloadOf = ({ item, script }: Item): Payload => ({ item, script })

interface Payload {
  item: number
  script: Script
}

export class Program {
  readonly owner: Owner
  private readonly client: InstanceType<House['Client']>
  /** Ids of the tasks whose handlers run now. */
  private readonly running = new Set<string>()
  /** Enqueues that nobody has answered yet. */
  offers = 0

  constructor(
    readonly name: string,
    private readonly ports: ProgramPorts,
  ) {
    const { house, scheduler, store, air, spec, weather, seed, tell } = ports
    this.owner = new Owner(name)
    const clock = scheduler.clockOf(this.owner)
    const unanswered = () => new house.PieceworkError('PW_BUSY', 'No answer came.')
    const dice = new Dice(seededRandom(seed + 1))
    const line = { scheduler, store, owner: this.owner, air, wire: spec.wire, weather, dice, tell, unanswered }
    const startWorker = house.workerWith({ makeHeartbeat: house.makeHeartbeat, alone: new house.Alone() })
    const connection = new house.Connection({
      ...{ engine: new Line(line), clock, random: seededRandom(seed), startWorker, heartbeat: 'loop', actor: name },
    })
    this.client = new house.Client(connection)
  }

  /** Starts working; the queue takes what its types are. */
  start(): void {
    const { spec, tell, beat, deadTo } = this.ports
    const { concurrency, prefetch, graceMs } = spec
    tell({ is: 'up', process: this.name, wire: spec.wire })
    for (const name of deadTo ? [queueName, deadName] : [queueName]) {
      const worker = this.queueOf(name).work(
        (payload: unknown, delivery) => this.handle(payload as Payload, delivery),
        {
          ...{ concurrency, prefetch, graceMs },
        },
      )
      // Troubles are what a simulation is made of.
      worker.on('error', () => {})
    }
    if (beat !== null) this.queue.schedule(beatName, { ...beat, type: 'a' }, beatTask).catch(() => {})
  }

  async enqueue(item: Item): Promise<string | null> {
    const { tell } = this.ports
    tell({ is: 'offered', process: this.name, item })
    this.offers++
    try {
      const { id, duplicate } = await this.queue.enqueue(payloadOf(item), this.optionsOf(item))
      tell({ is: 'accepted', process: this.name, item: item.item, id, duplicate })
      return id
    } catch (error) {
      tell({ is: 'rejected', process: this.name, item: item.item, code: String((error as { code?: unknown }).code) })
      return null
    } finally {
      this.offers--
    }
  }

  private optionsOf(item: Item): TaskOptions {
    const { type, priority, onWall, delayMs, onDuplicate } = item
    const due = delayMs === 0 ? {} : onWall ? { dueAt: this.ports.scheduler.rightWallMs + delayMs } : { delayMs }
    const { key, dedupKey, batch } = item
    return {
      type,
      priority,
      ...due,
      onDuplicate,
      key: key ?? undefined,
      dedupKey: dedupKey ?? undefined,
      batch: batch ?? undefined,
    }
  }

  /** Says what follows a batch. */
  async follow(name: string, task: Item): Promise<void> {
    const onDone = this.queue.draft(payloadOf(task), this.optionsOf(task))
    // A fault may refuse it, or another batch that is sealed already.
    await this.client
      .batch(name, { onDone })
      .stats()
      .catch(() => {})
  }

  async batch(name: string, act: 'seal' | 'cancel'): Promise<void> {
    await this.client
      .batch(name)
      [act]()
      .catch(() => {})
  }

  get queue() {
    return this.queueOf(queueName)
  }

  private queueOf(name: string) {
    return this.client.queue(name) as import('../../dist/queue/face.js').Queue<unknown>
  }

  /** A deploy's way to end: no new tasks, the grace time, the rest goes back. */
  async stop(): Promise<void> {
    const { tell } = this.ports
    tell({ is: 'stopping', process: this.name })
    await this.client.close()
    tell({ is: 'stopped', process: this.name })
  }

  private async handle({ script }: Payload, delivery: Delivery): Promise<void> {
    const { tell } = this.ports
    const { id, number, fence } = delivery
    tell({ is: 'start', process: this.name, id, number, fence, running: [...this.running] })
    this.running.add(id)
    const end = (how: string) => {
      this.running.delete(id)
      tell({ is: 'end', process: this.name, id, number, how })
    }
    try {
      await this.play(script, delivery)
      end('ack')
    } catch (error) {
      end(
        (error as Error).name === 'PieceworkError'
          ? String((error as { code?: string }).code)
          : String((error as Error).name),
      )
      throw error
    }
  }

  private async play({ ms, how, times, deaf }: Script, { id, number, signal }: Delivery): Promise<void> {
    const { house, suicide, scheduler } = this.ports
    const clock = scheduler.clockOf(this.owner)
    if (ms > 0) await pause(clock, ms, deaf ? undefined : signal)
    if (!deaf) signal.throwIfAborted()
    if (number > times) return
    if (how === 'kill') {
      suicide(id)
      await new Promise(() => {})
    }
    if (how === 'throw') throw new Error('as its script says')
    if (how === 'release') throw new house.Release()
    if (how === 'snooze') throw new house.Release({ delayMs: 150 })
    if (how === 'bury') throw new house.Bury('as its script says')
  }
}
