// Shows people how far a run is: a bar that is redrawn on a terminal, a line now and then elsewhere.
import type { Clock, Timer } from '../ground/clock.js'
import { grouped, humanMs } from './print.js'

/** How a batch stands, as far as it is known. */
export interface Standing {
  total: number
  /** False while more items may come: the total is a lower bound. */
  totalKnown: boolean
  done: number
  dead: number
  cancelled: number
  retries: number
  /** COMMANDs that run now in this process. */
  running: number
}

/** Where progress is written. */
export interface Screen {
  readonly terminal: boolean
  readonly columns: number
  write(text: string): void
}

export const stderrScreen: Screen = {
  get terminal() {
    return process.stderr.isTTY === true
  },
  get columns() {
    return process.stderr.columns ?? 80
  },
  write: (text) => void process.stderr.write(text),
}

const terminalEveryMs = 200
const lineEveryMs = 5000
/** Weight of the newest figure in the rate; about the last twenty looks. */
const newest = 0.1

export class Progress {
  readonly #clock: Clock
  readonly #screen: Screen
  readonly #standing: () => Promise<Standing>
  #timer: Timer | null = null
  #line = ''
  #hidden = 0
  #ended = false
  #lastAt: number
  #lastEnded: number | null = null
  #rate: number | null = null

  /** `standing` answers how things stand; it is asked once a redraw. */
  constructor(clock: Clock, screen: Screen, standing: () => Promise<Standing>) {
    this.#clock = clock
    this.#screen = screen
    this.#standing = standing
    this.#lastAt = clock.monotonicMs()
  }

  start(): void {
    this.#plan()
  }

  /** Takes the bar away for good. */
  stop(): void {
    this.#ended = true
    this.#timer?.cancel()
    this.#clear()
    this.#line = ''
  }

  /** Writes whole lines to the terminal with the bar out of the way. */
  around(write: () => void): void {
    this.hide()
    write()
    this.show()
  }

  /** Takes the bar away until show() was called as often. */
  hide(): void {
    if (this.#hidden++ === 0) this.#clear()
  }

  show(): void {
    if (--this.#hidden === 0 && this.#line !== '') this.#screen.write(this.#line)
  }

  #clear(): void {
    if (this.#screen.terminal && this.#line !== '') this.#screen.write('\r\u001b[K')
  }

  #plan(): void {
    const everyMs = this.#screen.terminal ? terminalEveryMs : lineEveryMs
    this.#timer = this.#clock.after(everyMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    try {
      const standing = await this.#standing()
      if (this.#ended) return
      const ratePerSecond = this.#measure(standing)
      if (this.#screen.terminal) {
        this.hide()
        this.#line = barLine(standing, ratePerSecond, this.#screen.columns)
        this.show()
      } else this.#screen.write(`piecework: ${textOf(standing, ratePerSecond)}\n`)
    } catch {
      // The store's troubles are reported by those who work on it; progress is only a look.
    }
    if (!this.#ended) this.#plan()
  }

  /** Tasks a second that ended lately; null until two looks were taken. */
  #measure(standing: Standing): number | null {
    const now = this.#clock.monotonicMs()
    const ended = standing.done + standing.dead + standing.cancelled
    if (this.#lastEnded !== null && now > this.#lastAt) {
      const lately = Math.max(0, ((ended - this.#lastEnded) * 1000) / (now - this.#lastAt))
      this.#rate = this.#rate === null ? lately : this.#rate + (lately - this.#rate) * newest
    }
    this.#lastAt = now
    this.#lastEnded = ended
    return this.#rate
  }
}

/** One line: `412/1 000 done, 31.0/s, 19 s left, 4 running, 2 retries, 1 dead`. */
export function textOf(standing: Standing, ratePerSecond: number | null): string {
  const { total, totalKnown, done, dead, cancelled, retries, running } = standing
  const open = total - done - dead - cancelled
  const parts = [`${grouped(done)}/${totalKnown ? '' : 'at least '}${grouped(total)} done`]
  if (ratePerSecond !== null) parts.push(`${ratePerSecond < 100 ? ratePerSecond.toFixed(1) : grouped(ratePerSecond)}/s`)
  if (ratePerSecond !== null && ratePerSecond > 0 && totalKnown && open > 0) {
    parts.push(`${humanMs((open / ratePerSecond) * 1000)} left`)
  }
  parts.push(`${running} running`)
  if (retries > 0) parts.push(`${grouped(retries)} retries`)
  if (dead > 0) parts.push(`${grouped(dead)} dead`)
  return parts.join(', ')
}

/** A bar and the text, in one row of the terminal. */
export function barLine(standing: Standing, ratePerSecond: number | null, columns: number): string {
  const text = textOf(standing, ratePerSecond)
  const width = Math.min(30, columns - text.length - 4)
  if (width < 5) return text.slice(0, Math.max(0, columns - 1))
  const { total, done, dead, cancelled } = standing
  const share = total === 0 ? 0 : Math.min(1, (done + dead + cancelled) / total)
  const full = Math.floor(share * width)
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${text}`
}
