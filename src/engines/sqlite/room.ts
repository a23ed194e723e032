// Room on the disk: the reserve file that is freed when there is none left, and whether that is what went wrong.
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Room kept for acks on a full disk: as much as the log grows before it starts over. */
const ballastBytes = 4 * 1024 * 1024
const ballastOf = (file: string) => `${file}-ballast`

/**
 * Makes the reserve file with real blocks; false when the disk has no room for it. Room for two of them must be free:
 * else the next process to open the store would take away again what acks were given.
 */
export function keepReserve(file: string): boolean {
  const ballast = ballastOf(file)
  try {
    if (statSync(ballast, { throwIfNoEntry: false })?.size === ballastBytes) return true
    const { bavail, bsize } = statfsSync(dirname(ballast))
    if (bavail * bsize < 2 * ballastBytes) return false
    const fd = openSync(ballast, 'w', 0o600)
    try {
      const block = Buffer.alloc(256 * 1024, 0x2e)
      for (let at = 0; at < ballastBytes; at += writeSync(fd, block, 0, block.length, at));
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    return true
  } catch {
    // What was written of it must not hold the room that acks need.
    rmSync(ballast, { force: true })
    return false
  }
}

/** Frees the reserve; true when there was one, so that what found no room may be tried again. */
export function freeReserve(file: string): boolean {
  const ballast = ballastOf(file)
  // Another process may have made it anew since this one freed it.
  const freed = existsSync(ballast)
  rmSync(ballast, { force: true })
  return freed
}

/** As much as SQLite asks for at once when it opens a file: its shared index. */
const probeBytes = 64 * 1024

/** False when the disk, a quota or a limit on the size of files leaves no room for a little more beside the file. */
export function hasRoom(file: string): boolean {
  const probe = `${file}-probe-${process.pid}`
  try {
    const fd = openSync(probe, 'w', 0o600)
    try {
      const at = statSync(file, { throwIfNoEntry: false })?.size ?? 0
      const wrote = writeSync(fd, Buffer.alloc(probeBytes), 0, probeBytes, at)
      fsyncSync(fd)
      return wrote === probeBytes
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    return !['ENOSPC', 'EDQUOT', 'EFBIG'].includes((error as NodeJS.ErrnoException).code ?? '')
  } finally {
    rmSync(probe, { force: true })
  }
}
