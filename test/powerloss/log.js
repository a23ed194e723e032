// Reads the log that record.c writes: one event for each record, in the order in which things happened.
import { readFileSync } from 'node:fs'

/**
 * @typedef {{ kind: 'open', file: number, made: boolean, name: string }
 *   | { kind: 'write', file: number, at: number, data: Buffer }
 *   | { kind: 'truncate', file: number, size: number }
 *   | { kind: 'unlink', name: string }
 *   | { kind: 'rename', from: string, to: string }
 *   | { kind: 'syncStart' | 'syncEnd', file: number, sync: bigint }} Event `file` is an inode, names are in the folder
 */

const headBytes = 24

/**
 * All events of a log; a record that its process did not live to finish is left out.
 * @param {string} path
 * @returns {Event[]}
 */
export function readLog(path) {
  const bytes = readFileSync(path)
  const events = []
  for (let at = 0; at + headBytes <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4)
    const end = at + headBytes + length
    if (end > bytes.length) break
    events.push(eventOf(bytes.subarray(at, at + headBytes), bytes.subarray(at + headBytes, end)))
    at = end
  }
  return events
}

/**
 * @param {Buffer} head
 * @param {Buffer} data
 * @returns {Event}
 */
function eventOf(head, data) {
  const kind = head.readUInt32LE(0)
  const file = Number(head.readBigUInt64LE(8))
  const number = head.readBigUInt64LE(16)
  switch (kind) {
    case 1:
      return { kind: 'open', file, made: number === 1n, name: data.toString() }
    case 2:
      return { kind: 'write', file, at: Number(number), data }
    case 3:
      return { kind: 'truncate', file, size: Number(number) }
    case 4:
      return { kind: 'unlink', name: data.toString() }
    case 5: {
      const [from = '', to = ''] = data.toString().split('/')
      return { kind: 'rename', from, to }
    }
    case 6:
    case 7:
      return { kind: kind === 6 ? 'syncStart' : 'syncEnd', file, sync: number }
    default:
      throw new Error(`The log has a record of kind ${kind}: it was not written by record.c.`)
  }
}
