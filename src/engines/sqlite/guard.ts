// Watches over the store's file: that it is still the one that was opened, and that a full disk leaves room for acks.
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { freeReserve, keepReserve } from './room.js'

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
  const identity = identityOf(file)
  // Its log and the log's index exist as long as a connection is open: somebody who removes them takes away what was
  // accepted, and the next who opens the file makes others.
  const parts = [file, `${file}-wal`, `${file}-shm`]
  const identities = parts.map(identityOf)
  let moved: PieceworkError | null = null
  let isFull = !keepReserve(file)
  let triedAtMs = clock.monotonicMs()
  return {
    identity,
    get moved() {
      return moved
    },
    check() {
      const part = moved ? undefined : parts.find((name, i) => identityOf(name) !== identities[i])
      if (part !== undefined) {
        moved = new PieceworkError('PW_STORE_MOVED', `${part} is no longer the file that was opened.`, { file: part })
      }
      if (moved) throw moved
    },
    full() {
      const now = clock.monotonicMs()
      if (isFull && now - triedAtMs >= refillEveryMs) {
        triedAtMs = now
        isFull = !keepReserve(file)
      }
      return isFull
    },
    free() {
      isFull = true
      triedAtMs = clock.monotonicMs()
      return freeReserve(file)
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
