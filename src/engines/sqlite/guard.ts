// Watches over the store's file: that it is still the one that was opened, and that a full disk leaves room for acks.
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'

/** Room kept for acks on a full disk: as much as the log grows before it starts over. */
const ballastBytes = 4 * 1024 * 1024
/** How often a full disk is tried again. */
const refillEveryMs = 500

/** Magic numbers of network file systems, whose locks or syncs do not do what SQLite relies on. */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x73757245, 'Coda'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
])

export interface Guard {
  /** Names the file itself, whatever it is called: device and inode. */
  readonly identity: string
  /** Throws PW_STORE_MOVED when the path no longer leads to the file that was opened. */
  check(): void
  /** What `check` found; from then on the store is not used any more. */
  readonly moved: PieceworkError | null
  /** True while the disk is full: enqueues are refused so that acks go on. Tries now and then whether it still is. */
  full(): boolean
  /** Frees the reserve after the disk had no room; true when that may help. */
  free(): boolean
}

/** For stores without a file. */
export const noGuard: Guard = { identity: '', check() {}, moved: null, full: () => false, free: () => false }

/** Throws PW_NETWORK_FS when the folder of the file is on a network file system. */
export function refuseNetwork(file: string): void {
  const name = networkTypes.get(statfsSync(dirname(file)).type)
  if (name === undefined) return
  throw new PieceworkError('PW_NETWORK_FS', `${file} is on ${name}, a network file system.`, { file, fileSystem: name })
}

export function fileGuard(file: string, clock: Clock): Guard {
  const ballast = `${file}-ballast`
  const identity = identityOf(file)
  let moved: PieceworkError | null = null
  let isFull = !fill(ballast)
  let triedAtMs = clock.monotonicMs()
  return {
    identity,
    get moved() {
      return moved
    },
    check() {
      if (!moved && identityOf(file) !== identity) {
        moved = new PieceworkError('PW_STORE_MOVED', `${file} is no longer the file that was opened.`, { file })
      }
      if (moved) throw moved
    },
    full() {
      const now = clock.monotonicMs()
      if (isFull && now - triedAtMs >= refillEveryMs) {
        triedAtMs = now
        isFull = !fill(ballast)
      }
      return isFull
    },
    free() {
      // Another process may have made it anew since this one freed it.
      const freed = existsSync(ballast)
      isFull = true
      triedAtMs = clock.monotonicMs()
      rmSync(ballast, { force: true })
      return freed
    },
  }
}

function identityOf(file: string): string {
  try {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return 'gone'
  }
}

/**
 * Makes the reserve file with real blocks; false when the disk has no room for it. Room for two of them must be free:
 * else the next process to open the store would take away again what acks were given.
 */
function fill(ballast: string): boolean {
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
