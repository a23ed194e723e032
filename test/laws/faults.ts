// Faults planted into good evidence: what each law exists to find, so that a checker that sleeps is found out.
import type { Evidence, Law } from './checker.js'
import type { Entry } from './chronicle.js'
import type { Line } from './processes.js'

export interface Fault {
  name: string
  law: Law
  /** Changes the evidence as the fault would have left it. */
  plant(evidence: Evidence): void
}

function some<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new Error(`The storm has no ${what} to plant a fault in.`)
  return found
}

const left = (evidence: Evidence, fits: (entry: Entry) => boolean = () => true): Entry =>
  some(
    evidence.chronicle.find((entry) => entry.event === 'leave' && fits(entry)),
    'acked task',
  )
const claimOf = (evidence: Evidence, fits: (entry: Entry) => boolean = () => true): Entry =>
  some(
    evidence.chronicle.find((entry) => entry.event === 'step' && entry.to === 'leased' && fits(entry)),
    'delivery',
  )
const lineOf = (evidence: Evidence, what: string, id?: string): Line =>
  some(
    evidence.lines.find((line) => line.what === what && (id === undefined || line.id === id)),
    `line "${what}"`,
  )
const noteOf = (evidence: Evidence, outcome: string): Entry =>
  some(
    evidence.chronicle.find((entry) => entry.outcome === outcome),
    `delivery that ${outcome}`,
  )

/** Puts an entry right behind another. */
function follow({ chronicle }: Evidence, entry: Entry, next: Partial<Entry>): void {
  chronicle.splice(chronicle.indexOf(entry) + 1, 0, { ...entry, ...next, seq: entry.seq + 0.5 })
}

const without = <T>(list: T[], one: T): void => void list.splice(list.indexOf(one), 1)

export const faults: readonly Fault[] = [
  {
    name: 'an accepted task that was never kept',
    law: 'P1',
    plant: ({ lines, chronicle }) => {
      const { id } = lines.find((line) => line.what === 'accepted') as Line
      for (const entry of chronicle.filter((one) => one.task === id)) without(chronicle, entry)
    },
  },
  {
    name: 'an accepted ack that was lost',
    law: 'P1',
    plant: (evidence) => {
      const { id } = lineOf(evidence, 'done')
      without(
        evidence.chronicle,
        left(evidence, (entry) => entry.task === id),
      )
    },
  },
  {
    name: 'a task whose row is gone without an ack',
    law: 'P3',
    plant: (evidence) => void evidence.tasks.pop(),
  },
  {
    name: 'a task that went before its handler had done its work',
    law: 'P3',
    plant: (evidence) => without(evidence.lines, lineOf(evidence, 'effect', left(evidence).task)),
  },
  {
    name: 'a second lease while the first still runs',
    law: 'P4',
    plant: (evidence) => {
      const claim = claimOf(evidence)
      const { number, fence } = claim
      follow(evidence, claim, { from: 'leased', number: number + 1, fence: fence + 1, fenceBefore: fence })
    },
  },
  {
    name: 'a lease that was ended before its time',
    law: 'P4',
    plant: (evidence) => {
      const note = noteOf(evidence, 'expired')
      note.endedAt = (note.endedAt ?? 0) - 60_000
    },
  },
  {
    name: 'a death declared of a worker that lives',
    law: 'P4',
    plant: (evidence) => {
      const { worker } = noteOf(evidence, 'died')
      evidence.deaths = evidence.deaths.filter(({ pid }) => !worker?.includes(`-${pid}-`))
    },
  },
  {
    name: 'a death declared of a worker that lives, under the number of a process that died before it',
    law: 'P4',
    plant: (evidence) => {
      const { worker, claimedAt } = noteOf(evidence, 'died')
      for (const death of evidence.deaths) {
        if (worker?.includes(`-${death.pid}-`)) death.startedAt = death.at = death.exitedAt = (claimedAt ?? 0) - 1000
      }
    },
  },
  {
    name: 'a handler that ran without a lease',
    law: 'P4',
    plant: (evidence) => {
      const line = lineOf(evidence, 'started')
      evidence.lines.push({ ...line, fence: (line.fence ?? 0) - 1 })
    },
  },
  {
    name: 'a stale ack that was accepted',
    law: 'P5',
    plant: (evidence) => {
      const again = left(evidence, ({ task, number }) => number > 1 && evidence.lines.some(isAckOf(task)))
      lineOf(evidence, 'done', again.task).number = again.number - 1
    },
  },
  {
    name: 'a task that was acked twice',
    law: 'P6',
    plant: (evidence) => void evidence.lines.push({ ...lineOf(evidence, 'done') }),
  },
  {
    name: 'a delivery after its ack',
    law: 'P6',
    plant: (evidence) => {
      const ack = left(evidence)
      const { number, fence } = ack
      follow(evidence, ack, { event: 'step', from: 'ready', to: 'leased', number: number + 1, fence: fence + 9 })
    },
  },
  {
    name: 'a sixth spent delivery',
    law: 'P7',
    plant: (evidence) => {
      claimOf(evidence, ({ spent }) => spent === 1).spent = 6
    },
  },
  {
    name: 'a spent delivery without a row in the history',
    law: 'P7',
    plant: (evidence) => {
      const { id } = some(evidence.tasks[0], 'dead letter')
      const last = some(
        evidence.chronicle.findLast((entry) => entry.task === id && entry.event === 'note'),
        'history',
      )
      without(evidence.chronicle, last)
    },
  },
  {
    name: 'two living tasks of one dedup key',
    law: 'P9',
    plant: (evidence) => {
      const enter = some(
        evidence.chronicle.find((entry) => entry.event === 'enter'),
        'task',
      )
      follow(evidence, enter, { task: '1' })
    },
  },
  {
    name: 'a count that is not that of the rows',
    law: 'P12',
    plant: (evidence) => {
      const proof = some(evidence.proofs.at(-1)?.[0], 'proof')
      proof.shown.ready = (proof.shown.ready ?? 0) + 1
    },
  },
  {
    name: 'a total that is not the sum of what was committed',
    law: 'P12',
    plant: (evidence) => {
      evidence.totals.done--
    },
  },
  {
    name: 'a delivery spent by a deploy',
    law: 'P13',
    plant: (evidence) => {
      const death = some(
        evidence.deaths.find(({ signal }) => signal === 'SIGTERM'),
        'deploy',
      )
      Object.assign(noteOf(evidence, 'died'), { worker: `host-${death.pid}-x`, claimedAt: death.startedAt })
    },
  },
]

const isAckOf = (task: string) => (line: Line) => line.what === 'done' && line.id === task
