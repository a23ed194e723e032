// Planted faults of durability: syncers that look right and are not, to show that the suite can tell.
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { walSyncer } from '../../dist/engines/sqlite/sync.js'

/** @typedef {import('../../dist/engines/sqlite/sync.js').Syncer} Syncer */

/**
 * Joins a sync that is running already instead of waiting for the next: what was committed after its start may be lost.
 * @param {string} file
 * @returns {Syncer}
 */
function joining(file) {
  let fd = -1
  // The log exists only once the engine has opened its file, which is after the syncer is made.
  const log = () => {
    if (fd < 0) fd = openSync(`${file}-wal`, 'r')
    return fd
  }
  /** @type {Promise<void> | null} */
  let running = null
  const after = () => {
    running ??= new Promise((resolve, reject) => {
      fdatasync(log(), (error) => {
        running = null
        if (error) reject(error)
        else resolve()
      })
    })
    return running
  }
  return { after, soon: () => void after(), now: () => fdatasyncSync(log()), close: () => fd >= 0 && closeSync(fd) }
}

/**
 * Does not sync a reservation of numbers before they are used: those that were handed out unsynced can come again.
 * @param {string} file
 * @param {import('../../dist/ground/clock.js').Clock} clock
 * @returns {Syncer}
 */
function unreserved(file, clock) {
  /** @type {Syncer | null} */
  let real = null
  const honest = () => {
    real ??= walSyncer(file, clock)
    return real
  }
  return { after: () => honest().after(), soon: () => honest().soon(), now() {}, close: () => real?.close() }
}

export const planted = { joining, unreserved }
