// Knows when nothing was wrong: promises about time hold for a process and a store that no fault keeps from acting.
import type { SimEvent } from '../events.js'
import type { Fault, FaultKind } from '../plan.js'

interface Trouble {
  from: number
  to: number
  /** Null: everybody's. */
  process: string | null
}

/** What disturbs the store and thereby everybody, and what disturbs one process. */
const disturbing: { store: readonly FaultKind[]; line: readonly FaultKind[] } = {
  store: ['slow', 'busy', 'fail', 'full', 'sleep'],
  line: ['lose', 'twice', 'starve', 'late', 'pause'],
}
/** What a fault started may still be under way for so long after it: calls given up, backoffs. */
const afterMs = 3000

export class Calm {
  private readonly troubles: Trouble[] = []

  /** Of the faults that disturb what the law is about; all, when it does not say. */
  constructor(private readonly kinds = disturbing) {}

  /** Takes an event in; objects to nothing. */
  see(event: SimEvent): [] {
    if (event.is === 'fault' && event.hits !== null) this.strike(event.fault, event.at, event.hits)
    return []
  }

  private strike({ kind, ms, size }: Fault, from: number, hits: string): void {
    const late = kind === 'starve' || kind === 'late' || kind === 'slow' ? size : 0
    const to = from + ms + late + afterMs
    if (this.kinds.store.includes(kind)) this.troubles.push({ from, to, process: null })
    // What strikes the line of a process strikes the one that takes its place, too.
    if (this.kinds.line.includes(kind)) this.troubles.push({ from, to, process: slotOf(hits) })
  }

  /** True when no fault touched this process (null: any process) or the store between the two instants. */
  during(process: string | null, from: number, to: number): boolean {
    const slot = process === null ? null : slotOf(process)
    const mine = (trouble: Trouble) => trouble.process === null || slot === null || trouble.process === slot
    return !this.troubles.some((trouble) => mine(trouble) && trouble.from <= to && trouble.to >= from)
  }
}

const slotOf = (process: string) => process.split('.')[0] as string
