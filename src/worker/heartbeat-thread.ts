// The heartbeat's thread: opens the store a second time and looks after the leases on the boards of this process.
import { parentPort, workerData } from 'node:worker_threads'
import type { Descriptor } from '../engine/contract.js'
import { engineFrom } from '../engines/open.js'
import { systemClock, type Timer } from '../ground/clock.js'
import { BoardReader, type Entry } from './board.js'
import type { ThreadNews, ThreadOrder, ThreadWord } from './heartbeat.js'
import { Pulse, roundEveryMs } from './pulse.js'

const engine = engineFrom(workerData as Descriptor)
const opened = engine.open()
const clock = systemClock

parentPort?.on('message', (order: ThreadOrder | 'end') => {
  if (order !== 'end') void opened.then(() => serve(order))
  else {
    void opened.then(() => engine.close())
    parentPort?.close()
  }
})

/** Looks after one worker until it leaves. */
function serve({ memory, info, leaseMs, port }: ThreadOrder): void {
  const board = new BoardReader(memory)
  const ends = new Extended()
  const tell = (news: ThreadNews) => port.postMessage(news)
  const pulse = new Pulse<Entry>({
    engine,
    clock,
    info,
    held: () => board.entries().map((entry) => ends.applied(entry)),
    take: (entry) => board.take(entry),
    extended: (entry, endsAt) => ends.note(entry, endsAt),
    tell,
  })
  let everyMs = roundEveryMs(leaseMs)
  let timer: Timer
  const round = () => {
    pulse.round()
    timer = clock.after(everyMs, round, true)
  }
  port.on('message', (word: ThreadWord) => {
    timer.cancel()
    if (word === 'leave') {
      void pulse.settled().then(() => {
        tell({ is: 'left' })
        port.close()
      })
      return
    }
    everyMs = Math.min(everyMs, roundEveryMs(word.leaseMs))
    round()
  })
  round()
  tell({ is: 'up' })
}

/** The lease ends that this thread has reached, until the main thread has heard of them and writes its own. */
class Extended {
  readonly #bySlot: ({ receipt: string; written: number; endsAt: number } | undefined)[] = []
  /** What stood on the board when it was read last. */
  readonly #written: number[] = []

  note({ slot, receipt }: Entry, endsAt: number): void {
    this.#bySlot[slot] = { receipt, written: this.#written[slot] as number, endsAt }
  }

  applied(entry: Entry): Entry {
    const { slot } = entry
    this.#written[slot] = entry.endsAt
    const known = this.#bySlot[slot]
    if (known?.receipt === entry.receipt && known.written === entry.endsAt) entry.endsAt = known.endsAt
    return entry
  }
}
