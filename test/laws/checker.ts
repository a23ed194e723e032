// Judges a run by the laws: from the engine's chronicle and records, and from what every process wrote down.
import type { State } from '../../dist/task/lifecycle.js'
import type { ProofRecord, TaskRecord } from '../../dist/task/records.js'
import type { Entry } from './chronicle.js'
import type { Line } from './processes.js'

/** The end of a process, from outside or by its own hand; `at` is when that was begun, `exitedAt` when it was gone. */
export interface Death {
  pid: number
  startedAt: number
  /** SIGKILL; SIGTERM, of which it ended well; or how else it went. */
  signal: string
  at: number
  exitedAt: number
}

/** Everything known of a run whose queue has drained and whose processes have ended. */
export interface Evidence {
  deliveriesMax: number
  chronicle: Entry[]
  lines: Line[]
  tasks: TaskRecord[]
  proofs: ProofRecord[][]
  /** Totals of the queue as the engine shows them. */
  totals: Record<'enqueued' | 'deliveries' | 'done' | 'dead' | 'expiries' | 'deaths' | 'failures' | 'stale', number>
  deaths: Death[]
}

export type Law = 'P1' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P9' | 'P12' | 'P13'
export interface Violation {
  law: Law
  text: string
}

/** One delivery by the chronicle. */
interface Claim {
  number: number
  fence: number
  spent: number
  worker: string | null
  seq: number
}

/** One task by the chronicle. */
interface Life {
  id: string
  entries: Entry[]
  claims: Map<number, Claim>
  /** Its history as it stands in the end: a lease that lapsed and was extended after all has not ended. */
  notes: Entry[]
  left: Entry | null
  last: State | null
}

/** The evidence, sorted by task. */
export interface Case extends Evidence {
  lives: Map<string, Life>
  byTask: Map<string, Line[]>
}

/** What a run must show before it may say anything: fewer acks, kills or refusals prove nothing. */
export const enough = { acks: 200, kills: 5, stale: 1 }

export interface Judgement {
  verdict: 'PASS' | 'FAIL' | 'VACUOUS'
  violations: Violation[]
  seen: { tasks: number; acks: number; dead: number; deliveries: number; kills: number; stale: number }
}

/** FAIL with every violation found, else VACUOUS when there was too little to judge, else PASS. */
export function judge(evidence: Evidence): Judgement {
  const of = caseOf(evidence)
  const violations = (Object.entries(laws) as [Law, Check][]).flatMap(([law, check]) =>
    [...check(of)].map((text) => ({ law, text })),
  )
  const seen = {
    tasks: of.lives.size,
    acks: [...of.lives.values()].filter((life) => life.left).length,
    dead: evidence.tasks.filter((task) => task.state === 'dead').length,
    deliveries: evidence.totals.deliveries,
    kills: evidence.deaths.filter((death) => death.signal === 'SIGKILL').length,
    stale: evidence.totals.stale,
  }
  const vacuous = seen.acks < enough.acks || seen.kills < enough.kills || seen.stale < enough.stale
  return { verdict: violations.length > 0 ? 'FAIL' : vacuous ? 'VACUOUS' : 'PASS', violations, seen }
}

function caseOf(evidence: Evidence): Case {
  const lives = new Map<string, Life>()
  for (const entry of evidence.chronicle) {
    let life = lives.get(entry.task)
    if (!life) {
      life = { id: entry.task, entries: [], claims: new Map(), notes: [], left: null, last: null }
      lives.set(entry.task, life)
    }
    life.entries.push(entry)
    if (entry.event === 'leave') life.left ??= entry
    if (entry.event === 'note') life.notes.push(entry)
    if (isRevival(entry)) life.notes = life.notes.filter((note) => note.number !== entry.number)
    if (entry.event === 'enter' || entry.event === 'step') life.last = entry.to
    if (isClaim(entry)) {
      const { number, fence, spent, worker, seq } = entry
      life.claims.set(fence, { number, fence, spent, worker, seq })
    }
  }
  const byTask = new Map<string, Line[]>()
  for (const line of evidence.lines) {
    if (line.id === undefined) continue
    const lines = byTask.get(line.id) ?? []
    lines.push(line)
    byTask.set(line.id, lines)
  }
  return { ...evidence, lives, byTask }
}

/** A new delivery: leased, and not the same delivery extended after its lease had lapsed. */
const isClaim = (entry: Entry) => entry.event === 'step' && entry.to === 'leased' && entry.fence !== entry.fenceBefore

/** The same delivery, extended after its lease had lapsed. */
const isRevival = (entry: Entry) => entry.to === 'leased' && entry.from === 'ready' && entry.fence === entry.fenceBefore

/** True of the process that held this note's delivery: a system gives the number of one that is gone to another. */
const held = ({ pid, startedAt, exitedAt }: Death, { worker, claimedAt }: Entry) =>
  pid === pidOf(worker) && claimedAt !== null && startedAt <= claimedAt + 1 && claimedAt <= exitedAt

type Check = (of: Case) => Iterable<string>
const linesOf = (of: Case, id: string, what: string) => (of.byTask.get(id) ?? []).filter((line) => line.what === what)
const pidOf = (worker: string | null) => Number(/-(\d+)-[^-]*$/.exec(worker ?? '')?.[1] ?? Number.NaN)

/** Accepted means kept: each answered enqueue is in the chronicle, and each answered ack. */
function* p1(of: Case): Iterable<string> {
  for (const line of of.lines) {
    if (line.what === 'accepted' && !of.lives.has(line.id ?? '')) yield `task ${line.id} was accepted and never kept`
    if (line.what === 'done' && !of.lives.get(line.id ?? '')?.left) yield `the ack of ${line.id} was accepted and lost`
  }
}

/** Every task is in one state, or its row left with an ack whose handler had done its work. */
function* p3(of: Case): Iterable<string> {
  const rows = new Map(of.tasks.map((task) => [task.id, task.state]))
  for (const life of of.lives.values()) {
    const row = rows.get(life.id)
    if (life.left && row) yield `task ${life.id} is done and still ${row}`
    if (!life.left && row !== life.last) yield `task ${life.id} was ${life.last} and is ${row ?? 'nowhere'}`
    const { left } = life
    if (left && !linesOf(of, life.id, 'effect').some((line) => line.fence === left.fence)) {
      yield `task ${life.id} went without the work of delivery ${left.number}`
    }
  }
  for (const id of rows.keys()) if (!of.lives.has(id)) yield `task ${id} came from nowhere`
}

/** Never two deliveries hold one task: the former ended by settle, lease end or declared death. */
function* p4(of: Case): Iterable<string> {
  for (const life of of.lives.values()) {
    let number = 0
    let fence = 0
    for (const entry of life.entries) {
      if (entry.event !== 'step') continue
      if (isClaim(entry)) {
        if (entry.from !== 'ready') yield `task ${life.id}: delivery ${entry.number} overlaps the one before`
        if (entry.number !== number + 1) yield `task ${life.id}: delivery ${entry.number} follows delivery ${number}`
        if (entry.fence <= fence) yield `task ${life.id}: fence ${entry.fence} does not rise above ${fence}`
        number = entry.number
        fence = entry.fence
      } else if (entry.from === 'leased') yield* endOf(of, life, entry)
    }
    for (const line of linesOf(of, life.id, 'started')) yield* startOf(life, line)
  }
}

/** What ended a lease otherwise than by ack. */
function* endOf(of: Case, life: Life, end: Entry): Iterable<string> {
  const what = `task ${life.id}: delivery ${end.number}`
  // Of this lease: what came before it was taken, or extended again, was about another.
  const from = life.entries.findLast((entry) => entry.seq < end.seq && entry.to === 'leased')?.seq ?? 0
  const note = life.entries.find((entry) => entry.seq > from && entry.seq < end.seq && entry.event === 'note')
  if (!note) {
    const released = end.spent === end.spentBefore - 1
    if (!released) yield `${what} ended and nothing says why`
  } else if (note.outcome === 'expired' && (note.endedAt ?? 0) < (end.leaseEndsAt ?? 0) - 1) {
    yield `${what} was ended ${Math.round((end.leaseEndsAt ?? 0) - (note.endedAt ?? 0))} ms before its lease`
  } else if (note.outcome === 'died') {
    const death = of.deaths.find((one) => held(one, note))
    if (!death || death.at > (note.endedAt ?? 0) + 1)
      yield `${what} was ended by the death of ${note.worker}, who lived`
  }
}

/** A handler starts at most once for a delivery, in the process that holds it. */
function* startOf(life: Life, line: Line): Iterable<string> {
  const claim = life.claims.get(line.fence ?? 0)
  const what = `task ${life.id}: process ${line.pid} ran delivery ${line.number}`
  if (!claim) yield `${what}, of which the engine knows nothing`
  else if (pidOf(claim.worker) !== line.pid) yield `${what}, which ${claim.worker} held`
}

/** Only the newest receipt acts: who was told "done" or "retry" held it, and who was told "stale" did not. */
function* p5(of: Case): Iterable<string> {
  for (const life of of.lives.values()) {
    for (const line of linesOf(of, life.id, 'done')) {
      if (life.left?.number !== line.number) {
        yield `task ${life.id}: the stale ack of delivery ${line.number} was accepted, ${life.left?.number} was newest`
      }
    }
    for (const line of linesOf(of, life.id, 'stale')) {
      if (life.left?.number === line.number) yield `task ${life.id}: delivery ${line.number} was acked and called stale`
    }
    for (const line of [...linesOf(of, life.id, 'retry'), ...linesOf(of, life.id, 'dead')]) {
      const noted = life.notes.some((note) => note.number === line.number && note.outcome !== 'expired')
      if (!noted) yield `task ${life.id}: the failure of delivery ${line.number} was accepted and is nowhere`
    }
  }
}

/** Acked at most once, and no delivery after the ack. */
function* p6(of: Case): Iterable<string> {
  for (const life of of.lives.values()) {
    const acks = linesOf(of, life.id, 'done').length
    if (acks > 1) yield `task ${life.id} was acked ${acks} times`
    const { left } = life
    if (!left) continue
    const later = life.entries.find((entry) => entry.seq > left.seq && entry.event !== 'note')
    if (later) yield `task ${life.id}: ${later.event} to ${later.to} (delivery ${later.number}) after its ack`
    const run = linesOf(of, life.id, 'started').find((line) => (line.fence ?? 0) > left.fence)
    if (run) yield `task ${life.id}: delivery ${run.number} ran after delivery ${left.number} had been acked`
  }
}

/** Never more than deliveriesMax spent deliveries, then dead; each leaves a row that says how it ended. */
function* p7(of: Case): Iterable<string> {
  const dead = new Map(of.tasks.filter((task) => task.state === 'dead').map((task) => [task.id, task]))
  for (const life of of.lives.values()) {
    for (const claim of life.claims.values()) {
      if (claim.spent > of.deliveriesMax) {
        yield `task ${life.id}: delivery ${claim.number} is spent delivery ${claim.spent} of ${of.deliveriesMax}`
      }
    }
    const letter = dead.get(life.id)
    if (!letter) continue
    const ended = new Set(life.notes.map((note) => note.number)).size
    if (letter.spent !== of.deliveriesMax) yield `task ${life.id} is dead after ${letter.spent} spent deliveries`
    if (ended !== letter.spent) yield `task ${life.id}: ${letter.spent} deliveries spent, ${ended} in its history`
  }
}

/** One dedup key, one task, while it lives; the run's dedupWindowMs is longer than the run, the dead give it up. */
function* p9(of: Case): Iterable<string> {
  const holders = new Map<string, string>()
  const known = new Map<string, Set<string>>()
  for (const entry of of.chronicle) {
    const { dedupKey, task } = entry
    if (dedupKey === null) continue
    const holder = holders.get(dedupKey)
    if (entry.event === 'enter') {
      if (holder !== undefined) yield `dedup key ${dedupKey} made task ${task} beside ${holder}`
      holders.set(dedupKey, task)
      known.set(dedupKey, (known.get(dedupKey) ?? new Set()).add(task))
    }
    if (entry.to === 'dead' && holder === task) holders.delete(dedupKey)
  }
  for (const line of of.lines) {
    const key = line.what === 'accepted' ? line.item?.options.dedupKey : undefined
    if (key !== undefined && !known.get(key)?.has(line.id ?? '')) yield `dedup key ${key} answered a strange ${line.id}`
  }
}

/** Figures are a full count of the same snapshot, and totals are the sum of what was committed. */
function* p12(of: Case): Iterable<string> {
  for (const proof of of.proofs.flat()) {
    for (const [figure, shown] of Object.entries(proof.shown)) {
      const counted = proof.counted[figure]
      if (shown !== counted) yield `${proof.kind} ${proof.name} shows ${shown} ${figure} where there are ${counted}`
    }
  }
  const count = (test: (entry: Entry) => boolean) => of.chronicle.filter(test).length
  const noted = (...outcomes: string[]) => count((e) => e.event === 'note' && outcomes.includes(e.outcome ?? ''))
  const sums: Partial<Evidence['totals']> = {
    enqueued: count((entry) => entry.event === 'enter'),
    deliveries: count(isClaim),
    done: count((entry) => entry.event === 'leave'),
    dead: of.tasks.filter((task) => task.state === 'dead').length,
    expiries: noted('expired'),
    deaths: noted('died'),
    failures: noted('retry', 'timeout', 'bury'),
  }
  for (const [figure, sum] of Object.entries(sums)) {
    const shown = of.totals[figure as keyof typeof sums]
    if (shown !== sum) yield `${figure} is ${shown} where ${sum} were committed`
  }
}

/** A worker that was asked to end ends well, holds nothing any more, and has cost nobody a delivery. */
function* p13(of: Case): Iterable<string> {
  const asked = of.deaths.filter(({ signal }) => signal === 'SIGTERM')
  for (const entry of of.chronicle) {
    if (entry.event !== 'note') continue
    const death = asked.find((one) => held(one, entry))
    if (!death) continue
    const after = (entry.endedAt ?? 0) > death.exitedAt
    if (entry.outcome === 'died' || (entry.outcome === 'expired' && after)) {
      yield `task ${entry.task}: delivery ${entry.number} was spent by the stop of ${entry.worker}`
    }
  }
}

const laws: Record<Law, Check> = { P1: p1, P3: p3, P4: p4, P5: p5, P6: p6, P7: p7, P9: p9, P12: p12, P13: p13 }
