// Chooses the moments of a recording at which the power goes, and plays them: the disk, the books, the start after it.
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { Disk, drawCut } from './disk.js'
import { Ledger } from './ledger.js'
import { markOf } from './marks.js'
import { putImage, startAgain } from './reboot.js'

/**
 * @typedef {import('./recorder.js').Recording} Recording
 * @typedef {import('./reboot.js').Kind} Kind
 * @typedef {{ at: number, seed: number }} Point the power goes after event `at`; `seed` decides the rest
 * @typedef {{ point: Point, accepted: number, wrong: { kind: Kind, what: string }[] }} Verdict
 */

/** Marks after which somebody relies on the answer. */
const answers = new Set(['in', 'ended', 'removed', 'revived', 'isSet', 'sealed', 'empty', 'had'])

/** How far ahead the engine reserves numbers; a longer leap makes it reserve anew. */
const reservedMs = 120_000

/**
 * Draws points in the order of time: anywhere; at the very moment somebody got an answer; at the first delivery of a
 * new store; and where a number was handed out first after the clock leapt beyond what was reserved.
 * @param {Recording} recording
 * @param {number} count
 * @param {number} seed
 * @param {boolean} [onlyLeaps] all of them after leaps
 * @returns {Point[]}
 */
export function drawPoints(recording, count, seed, onlyLeaps = false) {
  const random = seededRandom(seed)
  const marks = recording.events.map(markOf(recording.events))
  const last = recording.events.length - 1
  const answered = marks.flatMap((said, at) => (said && answers.has(said.is) ? [at] : []))
  const first = marks.findIndex((said) => said?.is === 'had')
  const leapt = marks.flatMap((leap, from) => {
    if (leap?.is !== 'jump' || leap.ms < reservedMs) return []
    const at = marks.findIndex((said, i) => i > from && said?.is === 'had' && said.fence >= leap.wallMs * 1000)
    return at < 0 ? [] : [at]
  })
  const pick = (/** @type {number[]} */ from) => from[Math.floor(random() * from.length)] ?? last
  const soonAfter = (/** @type {number} */ at) => Math.min(last, at + Math.floor(random() * 4))
  const draw = (/** @type {number} */ i) => {
    if (onlyLeaps) return soonAfter(pick(leapt))
    if (i % 12 === 0) return soonAfter(first)
    if (i % 3 === 0) return Math.floor(random() * (last + 1))
    return i % 3 === 1 || leapt.length === 0 ? pick(answered) : soonAfter(pick(leapt))
  }
  const points = Array.from({ length: count }, (_, i) => ({ at: draw(i), seed: Math.floor(random() * 2 ** 31) }))
  return points.sort((a, b) => a.at - b.at)
}

/**
 * Plays the points in one pass over the log.
 * @param {Recording} recording
 * @param {Point[]} points in the order of time
 * @param {{ honest: boolean }} disk `honest: false` is the control: no sync does anything
 * @param {(verdict: Verdict) => void} heard
 */
export async function play(recording, points, { honest }, heard) {
  const disk = new Disk({ honest })
  const ledger = new Ledger()
  const mark = markOf(recording.events)
  let next = 0
  for (const point of points) {
    for (; next <= point.at; next++) {
      const event = recording.events[next]
      if (!event) break
      disk.apply(event)
      const said = mark(event)
      if (said) ledger.note(said)
    }
    const random = seededRandom(point.seed)
    putImage(recording.folder, disk.after(drawCut(random), random), random)
    /** @type {Verdict['wrong']} */
    const wrong = []
    await startAgain(recording, ledger, random, (kind, what) => wrong.push({ kind, what }))
    heard({ point, accepted: ledger.accepted, wrong })
  }
}
