// The engine's clock: the monotonic clock plus an offset kept in the file; no jump of the wall clock moves a lease.
import type { Clock } from '../../ground/clock.js'

/** The part of the store's row that the clock needs; numbers are µs unless the name says ms. */
export interface ClockRow {
  bootId: string
  offsetUs: number
  asleepMs: number
  reservedUs: number
}

/** How far ahead numbers are reserved; a new boot whose wall clock is behind starts there. */
export const reserveUs = 120_000_000

/** Sleep shorter than this is not told from the coarseness of the uptime. */
export const sleepNoticedMs = 1000

/** Engine clock now, in whole µs. */
export const engineUs = (clock: Clock, row: ClockRow): number => Math.floor(clock.monotonicMs() * 1000) + row.offsetUs

/**
 * The clock row for this boot. The first one starts at the wall clock; after a restart of the machine the clock goes
 * on from the wall clock or from what was reserved, whichever is later, so that ids and fences never repeat.
 */
export function adoptBoot(clock: Clock, row: ClockRow | null): ClockRow {
  if (row?.bootId === clock.bootId) return row
  const nowUs = Math.max(Math.floor(clock.wallMs() * 1000), row?.reservedUs ?? 0)
  return {
    bootId: clock.bootId,
    offsetUs: nowUs - Math.floor(clock.monotonicMs() * 1000),
    asleepMs: asleepNow(clock),
    reservedUs: nowUs + reserveUs,
  }
}

/** How long this machine has slept since its boot, in ms. */
export const asleepNow = (clock: Clock): number => Math.max(0, Math.round(clock.uptimeMs() - clock.monotonicMs()))
