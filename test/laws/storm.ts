// A storm over one store: producers and workers are killed, stopped and asked to end at random moments, then it drains.
import { join } from 'node:path'
import { connect } from 'piecework'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import type { Death, Evidence } from './checker.js'
import { evidenceOf } from './evidence.js'
import type { Store } from './eyes.js'
import { type Ended, monotonicMs, type Process, passed, start, until } from './processes.js'

export interface StormOptions {
  seed: number
  /** SIGKILLs, those included that a worker gives itself between an effect and its ack. */
  kills: number
  /** Workers stopped (SIGSTOP) for longer than a lease, then continued. */
  stops: number
  /** Workers asked to end (SIGTERM), as a deploy does. */
  terms: number
}

const queue = 'storm'
const leaseMs = 1000
const deliveriesMax = 5
const itemsMin = 600
const policy = {
  leaseMs,
  timeoutMs: 1500,
  deliveriesMax,
  backoff: { baseMs: 50, factor: 2, maxMs: 400 },
  // Longer than any storm: a dedup key then means one task for all of it.
  dedupWindowMs: 3_600_000,
}
/** A place for a process, that is filled again whenever its process ends. */
interface Role {
  name: string
  program: 'worker' | 'producer'
  process: Process
}

/** Runs the storm, drains the queue, ends every process; answers all that is known of it. */
export async function storm(store: Store, options: StormOptions): Promise<Evidence> {
  const pw = await connect(store.url)
  try {
    await pw.queue(queue, policy).stats()
    const weather = new Weather(store, options)
    await weather.blow()
    await weather.retire('producer')
    weather.wasFair()
    await pw.queue(queue).drained({ waitMs: 600_000 })
    await weather.retire('worker')
    weather.wasFair()
    return await evidenceOf(store, { queue, deliveriesMax, deaths: weather.deaths, proofs: weather.proofs })
  } finally {
    await pw.close()
  }
}

class Weather {
  readonly deaths: Death[] = []
  readonly proofs: Evidence['proofs'] = []
  readonly #store: Store
  readonly #options: StormOptions
  readonly #random: () => number
  readonly #roles: Role[] = []
  /** What is done to a process, and since when: one blow at a time. */
  readonly #blows = new Map<Process, { signal: NodeJS.Signals; at: number }>()
  /** Ends that nobody asked for, and stops that ended badly. */
  readonly #accidents: string[] = []
  #items = 0

  constructor(store: Store, options: StormOptions) {
    this.#store = store
    this.#options = options
    this.#random = seededRandom(options.seed)
    for (const name of ['worker-1', 'worker-2', 'worker-3', 'worker-4']) this.#employ(name, 'worker')
    for (const name of ['producer-1', 'producer-2']) this.#employ(name, 'producer')
  }

  /** Kills, stops and asks to end until all of it has been done. */
  async blow(): Promise<void> {
    const { kills, stops, terms } = this.#options
    const others = [this.#each(stops, () => this.#stop()), this.#each(terms, () => this.#ask())]
    while (this.deaths.filter((death) => death.signal === 'SIGKILL').length < kills) {
      // Most that have begun to work, some that are starting; workers take twice as long to start.
      const early = this.#random() < 0.15
      const program = this.#random() < 0.6 ? 'worker' : 'producer'
      const fits = (role: Role) => role.program === program && (early || role.process.lines.length > 0)
      const target = await until('a process to kill', () => this.#any(fits))
      await passed(this.#below(200))
      if (!target.process.ended && !this.#blows.has(target.process)) await this.#end(target, 'SIGKILL')
      if (this.deaths.length % 10 === 0) this.proofs.push(await this.#store.proof())
    }
    await Promise.all(others)
    // A fast machine is done with the kills before there is enough to judge.
    await until('tasks enough', () => this.#items >= itemsMin)
  }

  /** Has all of these end by themselves, for good. */
  async retire(program: Role['program']): Promise<void> {
    for (const role of this.#roles.filter((one) => one.program === program)) {
      await until(`${role.name} to retire`, () => role.process.ended === null)
      this.#roles.splice(this.#roles.indexOf(role), 1)
      this.#blows.set(role.process, { signal: 'SIGTERM', at: monotonicMs() })
      role.process.tell({ say: 'stop' })
      await role.process.exit
    }
  }

  /** Throws when a process ended as none should. */
  wasFair(): void {
    if (this.#accidents.length > 0) throw new Error(this.#accidents.join('\n'))
  }

  #employ(name: string, program: Role['program']): void {
    const role: Role = { name, program, process: this.#start(name, program) }
    this.#roles.push(role)
    void this.#keep(role)
  }

  #start(name: string, program: Role['program']): Process {
    const { url, folder } = this.#store
    const common = { url, queue, policy, log: join(folder, `${name}.log`) }
    if (program === 'producer') return start('producer', { ...common, groups: true })
    return start('worker', { ...common, talks: ['ready'], options: { concurrency: 4, graceMs: 300 } })
  }

  async #keep(role: Role): Promise<void> {
    while (this.#roles.includes(role)) {
      const { process } = role
      if (role.program === 'producer') void this.#feed(process)
      this.#record(role, await process.exit)
      if (!this.#roles.includes(role)) return
      role.process = this.#start(role.name, role.program)
    }
  }

  /** Every end is on record, and those that should not have been are accidents besides. */
  #record({ name, process }: Role, { code, signal, at: exitedAt }: Ended): void {
    const { pid, startedAt } = process
    const blow = this.#blows.get(process)
    // By its own hand, asked to end or not: its log says when.
    const byItself = signal === 'SIGKILL' && blow?.signal !== 'SIGKILL'
    const well = code === 0 && blow?.signal === 'SIGTERM'
    if (signal !== 'SIGKILL' && !well) this.#accidents.push(`${name} ended with ${signal ?? code}: ${process.stderr}`)
    const how = well ? 'SIGTERM' : (signal ?? `exit ${code}`)
    this.deaths.push({ pid, startedAt, signal: how, at: byItself ? 0 : (blow?.at ?? exitedAt), exitedAt })
  }

  /** Gives a producer groups of tasks for as long as it lives. */
  async #feed(process: Process): Promise<void> {
    for (let groups = 1; !process.ended; groups++) {
      await process.heard('hungry', groups).catch(() => {})
      await passed(this.#between(30, 200))
      process.tell({ say: 'enqueue', items: Array.from({ length: 2 + this.#below(9) }, () => this.#item()) })
    }
  }

  #item() {
    const n = this.#items++
    // Every tenth asks once more for what somebody has asked for before.
    const key = n > 20 && this.#random() < 0.1 ? this.#below(n) : n
    return { payload: { n, ...this.#work() }, options: { dedupKey: `item-${key}` } }
  }

  #work() {
    const dice = this.#random()
    if (dice < 0.5) return { do: 'quick' }
    if (dice < 0.8) return { do: 'slow', ms: this.#between(10, 300) }
    if (dice < 0.9) return { do: 'fail', times: 1 + this.#below(2) }
    if (dice < 0.96) return { do: 'busy', ms: this.#between(1, 40) }
    if (dice < 0.975) return { do: 'fail', times: 99 }
    if (dice < 0.99) return { do: 'stubborn', ms: 1800 }
    return { do: 'drop', times: 1 }
  }

  /** Stops a worker for longer than its leases; it goes on as if nothing had been. */
  async #stop(): Promise<void> {
    const { process } = await this.#workingOne()
    this.#blows.set(process, { signal: 'SIGSTOP', at: monotonicMs() })
    process.kill('SIGSTOP')
    await passed(leaseMs * 1.7)
    process.kill('SIGCONT')
    // Long enough to find out what became of its leases.
    await passed(200)
    this.#blows.delete(process)
  }

  async #ask(): Promise<void> {
    await this.#end(await this.#workingOne(), 'SIGTERM')
  }

  async #end({ process }: Role, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#blows.set(process, { signal, at: monotonicMs() })
    process.kill(signal)
    await process.exit
  }

  #workingOne(): Promise<Role> {
    const works = ({ program, process }: Role) => program === 'worker' && process.lines.length > 0
    return until('a worker that works', () => this.#any(works))
  }

  #any(fits: (role: Role) => boolean): Role | undefined {
    const free = this.#roles.filter(({ process }) => process.ended === null && !this.#blows.has(process))
    const found = free.filter(fits)
    return found[this.#below(found.length)]
  }

  async #each(times: number, blow: () => Promise<void>): Promise<void> {
    for (let i = 0; i < times; i++) {
      await passed(this.#between(400, 1600))
      await blow()
    }
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  #between(min: number, max: number): number {
    return min + this.#below(max - min)
  }
}
