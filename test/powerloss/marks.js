// What the workload notes while it runs, one write into the recorded folder each, so that it stands in the same order.
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../dist/testing/seeded-random.js'

/**
 * What happened, as the workload saw it: what it asked for, noted before the call; what was answered, noted after it.
 * `n` is the number in a task's payload, known before its id; `number` counts its deliveries.
 *
 * @typedef {object} Asked one task to be
 * @property {number} n
 * @property {string} queue
 * @property {number} [delayMs]
 * @property {string} [dedupKey]
 * @property {string} [batch]
 * @property {string} [identity]
 *
 * @typedef {{ is: 'ask', tasks: Asked[], request?: string }
 *   | { is: 'in', ns: number[], answers: { id: string, duplicate: boolean }[] | null, request?: string }
 *   | { is: 'had', id: string, n: number, number: number, fence: number, receipt?: string }
 *   | { is: 'end', id: string, number: number, verdict: string }
 *   | { is: 'ended', id: string, number: number, verdict: string, outcome: string }
 *   | { is: 'flush', worker: string, flush: string, receipts: string[], outcomes: string[] }
 *   | { is: 'remove' | 'revive', ids: string[] }
 *   | { is: 'removed' | 'revived', ids: string[] }
 *   | { is: 'set' | 'isSet', queue: string, headStartMs: number }
 *   | { is: 'empty', queue: string, ns: number[] }
 *   | { is: 'jump', ms: number }
 *   | { is: 'sealed', batch: string }} Said
 * @typedef {Said & { wallMs: number }} Mark `wallMs` is what the workload's wall clock showed
 */

/** The file in the recorded folder that the marks are written to. */
export const marksName = 'marks'

/**
 * Opens the marks of one process of the workload.
 * @param {string} folder
 * @param {() => number} wallMs
 * @returns {(said: Said) => void}
 */
export function marker(folder, wallMs) {
  const fd = openSync(join(folder, marksName), 'a')
  return (said) => {
    writeSync(fd, JSON.stringify({ wallMs: Math.round(wallMs()), ...said }))
  }
}

/** Makes the function that answers the mark an event is, or null. */
export function markOf(/** @type {import('./log.js').Event[]} */ events) {
  const opened = events.find((event) => event.kind === 'open' && event.name === marksName)
  const inode = opened?.kind === 'open' ? opened.file : -1
  return (/** @type {import('./log.js').Event} */ event) => {
    if (event.kind !== 'write' || event.file !== inode) return null
    return /** @type {Mark} */ (JSON.parse(event.data.toString()))
  }
}

/** The payload of task `n`: the same for workload and checker, of a few bytes to several pages. */
export function payloadOf(/** @type {number} */ n) {
  const draw = seededRandom(n)()
  const size = draw < 0.02 ? 20_000 : draw < 0.1 ? 3000 : Math.floor(draw * 200)
  return { n, pad: String.fromCharCode(97 + (n % 26)).repeat(size) }
}
