// What every program of the laws starts with: its orders, its log that a SIGKILL cannot take back, its parent's word.
import { openSync, writeSync } from 'node:fs'

/** What the parent wants of this process; `log`: the file to write to; `talks`: what to tell the parent, else all. */
export const orders = JSON.parse(process.argv[2] ?? '{}')

/** The clock that all processes of this machine share, in ms. */
export const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6

// A test that ended, however it did, leaves no process behind.
process.on('disconnect', () => process.exit(1))

/** Answers a function that writes one line, whole, before it returns. */
export function notes() {
  const fd = orders.log === undefined ? null : openSync(orders.log, 'a')
  return (what, more = {}) => {
    const line = { what, at: monotonicMs(), pid: process.pid, ...more }
    if (fd !== null) writeSync(fd, `${JSON.stringify(line)}\n`)
    if ((orders.talks?.includes(what) ?? true) && process.connected) process.send?.(line)
  }
}

/** Calls `act` each time the parent says this; answers a way to stop listening. */
export function told(say, act) {
  const listen = (/** @type {any} */ word) => word.say === say && act(word)
  process.on('message', listen)
  return () => process.off('message', listen)
}

/** Resolves when the parent says this. */
export const wordFrom = (say) =>
  new Promise((resolve) => {
    const deaf = told(say, (word) => {
      deaf()
      resolve(word)
    })
  })

/** What a listener or a catch is told of an error. */
export const ofError = (/** @type {any} */ { code, message }) => ({ code, text: message })
