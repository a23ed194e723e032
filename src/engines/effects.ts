// Effect keys as both SQL engines keep them: how long, and when those whose task lives on are looked at again.
import type { Names } from './names.js'

/** A mark whose time is over while its task is still there is looked at again so much later, ms. */
export const effectsAgainMs = 3_600_000

/** The instant until which a mark that is made now is kept. */
export const effectEndsAt = (catalog: Names, queue: number, now: number): number =>
  now + catalog.policyOf(queue).effectKeepMs
