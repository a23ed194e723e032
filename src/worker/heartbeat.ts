// Keeps the leases of held deliveries and says that the worker lives: from a thread where it can, else on the loop.
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker as Thread } from 'node:worker_threads'
import type { Descriptor, Engine, WorkerInfo } from '../engine/contract.js'
import { type Clock, systemClock, type Timer } from '../ground/clock.js'
import { Board } from './board.js'
import { type Lease, type News, Pulse, roundEveryMs } from './pulse.js'

/** A delivery in a heartbeat's care, and where that heartbeat finds it. */
export interface Held extends Lease {
  /** Its place on the shared board; -1 while it has none, -2 once the thread has ended the delivery. */
  slot: number
  /** Its place in the list of those that the loop looks after; -1 while it is not there. */
  place: number
}

/** The port that keeps a worker's leases; a simulator brings its own. */
export interface Heartbeat {
  /** Resolves when leases may be taken; `leaseMs` is the shortest that is expected. */
  start(info: WorkerInfo, leaseMs: number): Promise<void>
  hold(held: Held): void
  /** Notes another phase or lease end; false when the heartbeat has ended the delivery itself: no verdict is needed. */
  changed(held: Held): boolean
  /** Lets go: the verdict was answered, or the lease is lost. More calls do nothing. */
  drop(held: Held): void
  /** Tells at once what is known but not told yet, because the loop was blocked. */
  hear(): void
  /** Resolves when nothing of it runs. */
  stop(): Promise<void>
}

/** What a heartbeat needs of its worker. */
export interface Care {
  readonly engine: Engine
  readonly clock: Clock
  /** Deliveries held at most. */
  readonly heldMax: number
  readonly tell: (news: News) => void
}

export type MakeHeartbeat = (care: Care, kind: 'auto' | 'loop') => Heartbeat

/** Below this a lease could end while the thread is still starting and a first handler blocks the loop. */
const awaitThreadMs = 5000

/** In a thread where the store can be opened there and time is the machine's own; else on the loop. */
export const makeHeartbeat: MakeHeartbeat = (care, kind) => {
  const descriptor = care.engine.traits.threads && kind === 'auto' ? care.engine.descriptor() : null
  return descriptor && care.clock === systemClock ? new ThreadHeartbeat(care, descriptor) : new LoopHeartbeat(care)
}

class LoopHeartbeat implements Heartbeat {
  readonly #care: Care
  /** A list in no order: a Set of thousands that come and go cost the collector 5 µs a task, this costs nothing. */
  readonly #held: Held[] = []
  #pulse: Pulse<Held> | null = null
  #timer: Timer | null = null
  #leaseMs = Number.POSITIVE_INFINITY

  constructor(care: Care) {
    this.#care = care
  }

  async start(info: WorkerInfo, leaseMs: number): Promise<void> {
    const { engine, clock, tell } = this.#care
    this.#pulse = new Pulse<Held>({
      engine,
      clock,
      info,
      held: () => this.#held.slice(),
      // Whoever runs on the loop can see what is overdue for himself.
      take: () => false,
      extended: () => {},
      tell,
    })
    this.#quicken(leaseMs)
  }

  hold(held: Held): void {
    held.place = this.#held.push(held) - 1
    if (held.leaseMs < this.#leaseMs) this.#quicken(held.leaseMs)
  }

  changed(): boolean {
    return true
  }

  drop(held: Held): void {
    if (held.place === -1) return
    const last = this.#held.pop() as Held
    if (last !== held) {
      this.#held[held.place] = last
      last.place = held.place
    }
    held.place = -1
  }

  hear(): void {}

  get running(): boolean {
    return this.#pulse !== null
  }

  async stop(): Promise<void> {
    const pulse = this.#pulse
    this.#pulse = null
    this.#timer?.cancel()
    await pulse?.settled()
  }

  #quicken(leaseMs: number): void {
    this.#leaseMs = leaseMs
    this.#timer?.cancel()
    this.#plan()
  }

  #plan(): void {
    if (!this.#pulse) return
    this.#timer = this.#care.clock.after(roundEveryMs(this.#leaseMs), () => {
      this.#pulse?.round()
      this.#plan()
    })
  }
}

/** What the main thread sends for one worker, with the port on which the two speak of it. */
export interface ThreadOrder {
  memory: SharedArrayBuffer
  info: WorkerInfo
  leaseMs: number
  port: MessagePort
}
/** On that port: shorter leases than expected, or the end. */
export type ThreadWord = { leaseMs: number } | 'leave'
export type ThreadNews = News | { is: 'up' } | { is: 'left' }

/** One thread serves all workers of an engine. */
interface Host {
  readonly thread: Thread
  /** Why it no longer runs. */
  readonly ended: Promise<Error>
  readonly exited: Promise<void>
  users: number
}
const hosts = new WeakMap<Engine, Host>()

function hostOf(engine: Engine, descriptor: Descriptor): Host {
  let host = hosts.get(engine)
  if (!host) {
    const thread = new Thread(new URL('./heartbeat-thread.js', import.meta.url), { workerData: descriptor })
    thread.unref()
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    const ended = new Promise<Error>((resolve) => {
      thread.once('error', resolve)
      thread.once('exit', (code) => resolve(new Error(`It exited with ${code}.`)))
    })
    const made = { thread, ended, exited, users: 0 }
    host = made
    hosts.set(engine, made)
    void exited.then(() => hosts.get(engine) === made && hosts.delete(engine))
  }
  host.users++
  return host
}

class ThreadHeartbeat implements Heartbeat {
  readonly #care: Care
  readonly #descriptor: Descriptor
  readonly #board: Board
  /** For deliveries that do not fit on the board, and for all when the thread fails. */
  readonly #loop: LoopHeartbeat
  readonly #bySlot: (Held | undefined)[] = []
  #info: WorkerInfo | null = null
  #host: Host | null = null
  #port: MessagePort | null = null
  #leaseMs = 0
  #onLoop = false
  #arrived: () => void = () => {}
  #gone: () => void = () => {}
  readonly #left = new Promise<void>((resolve) => {
    this.#gone = resolve
  })

  constructor(care: Care, descriptor: Descriptor) {
    this.#care = care
    this.#descriptor = descriptor
    this.#board = new Board(care.heldMax)
    this.#loop = new LoopHeartbeat(care)
  }

  async start(info: WorkerInfo, leaseMs: number): Promise<void> {
    const up = new Promise<void>((resolve) => {
      this.#arrived = resolve
    })
    this.#info = info
    this.#leaseMs = leaseMs
    const host = hostOf(this.#care.engine, this.#descriptor)
    this.#host = host
    void host.ended.then((error) => this.#failed(error))
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (news: ThreadNews) => this.#hear(news))
    const order: ThreadOrder = { memory: this.#board.memory, info, leaseMs, port: port2 }
    host.thread.postMessage(order, [port2])
    // Until then nothing else may hold the process open: it would end in the middle of `await worker.ready`.
    if (leaseMs < awaitThreadMs) await up
    port1.unref()
  }

  hold(held: Held): void {
    const slot = this.#onLoop ? -1 : this.#board.hold(held)
    held.slot = slot
    if (slot === -1) {
      this.#loop.hold(held)
      this.#startLoop()
      return
    }
    this.#bySlot[slot] = held
    if (held.leaseMs < this.#leaseMs) {
      this.#leaseMs = held.leaseMs
      this.#say({ leaseMs: held.leaseMs })
    }
  }

  changed(held: Held): boolean {
    if (held.slot < 0) return held.slot === -1
    const { slot } = held
    if (this.#board.change(slot, held)) return true
    this.#bySlot[slot] = undefined
    held.slot = -2
    return false
  }

  drop(held: Held): void {
    this.#loop.drop(held)
    if (held.slot >= 0) this.#clear(held)
  }

  hear(): void {
    if (!this.#port) return
    for (;;) {
      const got = receiveMessageOnPort(this.#port) as { message: ThreadNews } | undefined
      if (!got) return
      this.#hear(got.message)
    }
  }

  async stop(): Promise<void> {
    const host = this.#host
    this.#host = null
    if (host && !this.#onLoop) {
      this.#say('leave')
      await Promise.race([this.#left, host.exited])
    }
    this.#port?.close()
    await this.#loop.stop()
    if (host && --host.users === 0) {
      hosts.delete(this.#care.engine)
      host.thread.postMessage('end')
      await host.exited
    }
  }

  #clear(held: Held): boolean {
    const { slot } = held
    const ours = this.#board.clear(slot)
    this.#bySlot[slot] = undefined
    held.slot = ours ? -1 : -2
    return ours
  }

  #say(word: ThreadWord): void {
    this.#port?.postMessage(word)
  }

  #hear(news: ThreadNews): void {
    if (news.is === 'up') this.#arrived()
    else if (news.is === 'left') this.#gone()
    else this.#care.tell(news)
  }

  /** The thread is gone: the loop takes over what it held. */
  #failed(error: Error): void {
    if (this.#onLoop || !this.#host) return
    this.#onLoop = true
    for (const held of this.#bySlot) {
      // What the thread had taken it has settled, or its lease will end.
      if (held && this.#clear(held)) this.#loop.hold(held)
    }
    this.#startLoop()
    this.#arrived()
    const { code } = error as { code?: unknown }
    this.#care.tell({ is: 'failed', code: String(code), message: `The heartbeat thread failed: ${error.message}` })
  }

  #startLoop(): void {
    if (this.#info && !this.#loop.running) void this.#loop.start(this.#info, this.#leaseMs)
  }
}
