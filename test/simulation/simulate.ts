// Plays a plan: chaos with its faults, a heal phase in which everything must finish, and the end of all processes.

import type { Kind, Patch } from '../../dist/engine/contract.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { Dice } from './dice.js'
import { quickSync } from './disk.js'
import type { Happening, SimEvent } from './events.js'
import type { House } from './house.js'
import type { Weather } from './line.js'
import type { BatchPlan, Fault, Plan } from './plan.js'
import { beatName, beatTask, deadName, Program, queueName } from './program.js'
import { Owner, Scheduler } from './scheduler.js'
import { Store } from './store.js'

/** Everything must be finished so long after the last fault, and after a few leases that only time can end. */
const healMs = 240_000
/** For so long the schedule goes on when no fault strikes any more: every process is back by then, and sweeps. */
const beatOnMs = 6000
const leasesMax = 12
/** A process that killed itself is back after. */
const reviveMs = 300

const calm = (): Weather => ({ lose: 0, twice: 0, starve: 0, late: 0 })

/** The same plan gives the same events. */
export async function simulate(plan: Plan, house: House): Promise<SimEvent[]> {
  const world = new World(plan, house)
  const warn = process.emitWarning
  // Sweeps that a fault refused are warnings of the process; here they are the point.
  process.emitWarning = () => {}
  try {
    await world.open()
    await world.play()
    return world.events
  } finally {
    process.emitWarning = warn
    world.close()
  }
}

interface Slot {
  program: Program
  weather: Weather
  lives: number
  stopping: boolean
}

class World {
  readonly events: SimEvent[] = []
  private readonly scheduler = new Scheduler()
  private readonly fate = new Owner('fate')
  private readonly air = new Owner('air')
  private readonly dice: Dice
  private readonly accepted: string[] = []
  private slots: Slot[] = []
  private firstAt = 0
  private beatEnded = false
  private store!: Store

  constructor(
    private readonly plan: Plan,
    private readonly house: House,
  ) {
    this.dice = new Dice(seededRandom(plan.seed + 5))
  }

  private readonly tell = (happening: Happening): void => {
    this.events.push({ step: this.scheduler.step, at: this.scheduler.now, ...happening })
  }

  async open(): Promise<void> {
    const { plan, scheduler } = this
    this.store = await Store.open(this.house, scheduler, plan.seed, this.tell)
    const { deadTo = false, policy } = plan
    await this.configure('queue', queueName, { code: { ...policy, ...(deadTo ? { deadTo: deadName } : {}) } })
    if (deadTo) await this.configure('queue', deadName, { code: { ...policy, concurrencyMax: null } })
    await this.setBeat()
  }

  private get beat() {
    const { beat } = this.plan
    // A program that comes up after the end of the schedule must not begin another one.
    return beat && !this.beatEnded ? { everyMs: beat.everyMs, dueAt: this.firstAt, missed: beat.missed } : null
  }

  private async setBeat(): Promise<void> {
    const { plan, scheduler } = this
    if (!plan.beat) return
    // What is in the past when a schedule is set is none of its slots.
    this.firstAt = Math.floor(scheduler.rightWallMs) + Math.max(1, plan.beat.firstMs)
    const task = { payload: JSON.stringify(beatTask), type: 'a' }
    await this.configure('schedule', `${queueName}\0${beatName}`, { ...this.beat, task })
    this.tell({ is: 'beat', firstAt: this.firstAt, wallMs: scheduler.rightWallMs })
  }

  /** Ends the schedule when all who sweep have had their time, so that everything can finish. */
  private async endBeat(): Promise<void> {
    const { plan, scheduler } = this
    if (!plan.beat) return
    await scheduler.run(scheduler.now + beatOnMs, () => false)
    this.beatEnded = true
    const removed = this.configure('schedule', `${queueName}\0${beatName}`, null)
    this.tell({ is: 'beat', firstAt: null, wallMs: scheduler.rightWallMs })
    await removed
  }

  /** What the operator of the whole does, beside the store. */
  private async configure(kind: Kind, name: string, patch: Patch | null): Promise<void> {
    const { answer } = this.store.hand('configure', [kind, name, patch, 'plan'], { process: 'plan', proof: null })
    await this.scheduler.answer(`configure ${kind} ${JSON.stringify(name)}`, answer)
  }

  /** Every batch is sealed in the end, whoever failed to, so that all can finish. */
  private async sealAll(): Promise<void> {
    const { plan, scheduler, house } = this
    for (const { name } of plan.batches ?? []) {
      for (let sealed = false; !sealed; ) {
        await this.configure('batch', name, { sealed: true }).then(
          () => {
            sealed = true
          },
          (error) => {
            if (!(error instanceof house.PieceworkError)) throw error
            sealed = error.code === 'PW_BATCH_SEALED'
          },
        )
        // A fault that lasts may have refused it.
        if (!sealed) await scheduler.run(scheduler.now + 100, () => false)
      }
    }
  }

  async play(): Promise<void> {
    const { plan, scheduler } = this
    const from = scheduler.now
    this.tell({ is: 'phase', phase: 'chaos' })
    this.slots = plan.processes.map((_, index) => {
      const weather = calm()
      return { program: this.program(index, 1, weather), weather, lives: 1, stopping: false }
    })
    for (const slot of this.slots) slot.program.start()
    for (const item of plan.items) this.at(item.atMs, () => void this.enqueue(item.process, item))
    for (const batch of plan.batches ?? []) this.prepare(batch)
    for (const fault of plan.faults) this.at(fault.atMs, () => this.strike(fault))
    for (const act of plan.acts) this.at(act.atMs, () => this.act(act))
    await scheduler.run(from + plan.chaosMs, () => false)
    await this.figures()
    await this.heal()
  }

  /** Nothing of it happens any more; thousands of stores that are left open fill the memory. */
  close(): void {
    this.store?.close()
  }

  private figures = () => this.scheduler.answer('measure', this.store.figures())

  /** What programs do about a batch, those that are there at its time. */
  private prepare({ name, says, process, sealMs, cancelMs }: BatchPlan): void {
    const at = (ms: number, index: number, act: (program: Program) => Promise<void>) =>
      this.at(ms, () => {
        const { program, stopping } = this.slot(index)
        if (!stopping && program.owner.state !== 'gone') void act(program)
      })
    for (const { atMs, process, task } of says) at(atMs, process, (program) => program.follow(name, task))
    at(sealMs, process, (program) => program.batch(name, 'seal'))
    if (cancelMs !== null) at(cancelMs, process, (program) => program.batch(name, 'cancel'))
  }

  private at(ms: number, fn: () => void): void {
    this.scheduler.after(this.fate, ms, fn)
  }

  private program(index: number, life: number, weather: Weather): Program {
    const { house, scheduler, store, air, tell, plan, beat } = this
    const name = `p${index}.${life}`
    const spec = plan.processes[index] as Plan['processes'][number]
    const seed = plan.seed * 1009 + index * 101 + life
    const suicide = (task: string) => this.kill(index, reviveMs, task)
    const { deadTo = false } = plan
    return new Program(name, { house, scheduler, store, air, spec, deadTo, weather, seed, tell, suicide, beat })
  }

  private slot = (index: number): Slot => this.slots[index % this.slots.length] as Slot

  private async enqueue(index: number, item: Plan['items'][number]): Promise<void> {
    const { program, stopping } = this.slot(index)
    // A process that is away makes no work.
    if (stopping || program.owner.state === 'gone') return
    const id = await program.enqueue(item)
    if (id !== null) this.accepted.push(id)
  }

  private act({ do: what, pick }: Plan['acts'][number]): void {
    const alive = this.slots.find(({ program, stopping }) => !stopping && program.owner.state === 'running')
    const id = this.accepted[pick % Math.max(1, this.accepted.length)]
    if (!alive || id === undefined) return
    const { queue } = alive.program
    const done = what === 'redrive' ? queue.dead.redrive({ all: true }) : queue.cancel(id)
    // A fault may have refused it.
    void done.catch(() => {})
  }

  private strike(fault: Fault): void {
    const { kind, ms, size } = fault
    const index = (fault.process ?? 0) % this.slots.length
    const slot = this.slot(index)
    const { disk } = this.store
    const { owner } = slot.program
    const away = fault.process !== undefined && (slot.stopping || owner.state !== 'running')
    this.tell({ is: 'fault', fault, hits: away ? null : fault.process === undefined ? 'all' : owner.name })
    if (away) return
    const forWhile = (begin: () => void, end: () => void) => {
      begin()
      this.at(ms, end)
    }
    const share = (field: keyof Weather) =>
      forWhile(
        () => Object.assign(slot.weather, { [field]: size }),
        () => Object.assign(slot.weather, { [field]: 0 }),
      )
    switch (kind) {
      case 'kill':
        return this.kill(index, ms, null)
      case 'pause':
        return this.pause(slot, ms)
      case 'deploy':
        return void this.deploy(index)
      case 'jump':
        return this.scheduler.jumpWall(size)
      case 'sleep':
        return this.scheduler.sleep(size)
      case 'slow':
        return forWhile(
          () => Object.assign(disk, { syncMs: () => this.dice.between(1, size) }),
          () => Object.assign(disk, { syncMs: quickSync }),
        )
      case 'busy':
        return forWhile(
          () => Object.assign(disk, { busy: true }),
          () => Object.assign(disk, { busy: false }),
        )
      case 'fail':
        return forWhile(
          () => Object.assign(disk, { failing: true }),
          () => Object.assign(disk, { failing: false }),
        )
      case 'full':
        return forWhile(
          () => Object.assign(this.store, { full: true }),
          () => Object.assign(this.store, { full: false }),
        )
      default:
        return share(kind)
    }
  }

  private kill(index: number, backMs: number, by: string | null): void {
    const slot = this.slot(index)
    const { name, owner } = slot.program
    // Two handlers of one process may end it in the same moment.
    if (owner.state === 'gone') return
    this.scheduler.drop(owner)
    this.tell({ is: 'killed', process: name, by })
    if (!this.plan.processes[index]?.wire) this.store.bury(name)
    this.at(backMs, () => this.begin(index))
  }

  private begin(index: number): void {
    const slot = this.slot(index)
    slot.lives++
    slot.stopping = false
    slot.program = this.program(index, slot.lives, slot.weather)
    slot.program.start()
  }

  private pause({ program }: Slot, ms: number): void {
    this.scheduler.hold(program.owner)
    this.tell({ is: 'paused', process: program.name })
    this.at(ms, () => {
      if (program.owner.state !== 'held') return
      this.tell({ is: 'resumed', process: program.name })
      this.scheduler.release(program.owner)
    })
  }

  /** The old process ends in good order; the new one starts when it has ended. */
  private async deploy(index: number): Promise<void> {
    const slot = this.slot(index)
    const { program } = slot
    slot.stopping = true
    await program.stop()
    this.scheduler.drop(program.owner)
    this.at(50, () => {
      if (slot.program === program) this.begin(index)
    })
  }

  /** No fault strikes any more, those that last end by themselves; then everything finishes or a law is broken. */
  private async heal(): Promise<void> {
    const { scheduler } = this
    // What is due at a wall-clock instant waits for that clock alone.
    scheduler.setWallRight()
    this.tell({ is: 'phase', phase: 'heal' })
    await this.endBeat()
    await this.sealAll()
    const open = await this.drained(scheduler.now + healMs + leasesMax * this.plan.policy.leaseMs)
    if (open) this.tell({ is: 'phase', phase: 'closing' })
    await this.figures()
    const stops = this.slots.map(async (slot) => {
      if (slot.stopping || slot.program.owner.state !== 'running') return
      slot.stopping = true
      await slot.program.stop()
    })
    let stopped = false
    void Promise.all(stops).then(() => {
      stopped = true
    })
    await scheduler.run(scheduler.now + 60_000, () => stopped)
    await this.figures()
    this.tell({ is: 'phase', phase: 'over' })
  }

  /** True when nothing is scheduled, waiting, ready or leased any more or on its way, and no fault lasts. */
  private async drained(endAt: number): Promise<boolean> {
    const { scheduler, store } = this
    while (scheduler.now < endAt) {
      await scheduler.run(scheduler.now + 500, () => false)
      const { types } = await scheduler.answer('measure', store.engine.measure(null, false))
      const open = types.reduce((sum, row) => sum + row.scheduled + row.waiting + row.ready + row.leased, 0)
      const here = this.slots.every(({ program, stopping }) => !stopping && program.owner.state === 'running')
      // An enqueue that is sent until it is answered, a copy of a call that the wire has yet to deliver.
      const coming = scheduler.awaits(this.air) || this.slots.some(({ program }) => program.offers > 0)
      if (open === 0 && here && !coming) return true
    }
    return false
  }
}
