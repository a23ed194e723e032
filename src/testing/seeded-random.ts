// Chance that repeats: the same seed gives the same numbers.
import type { Random } from '../ground/clock.js'

/** A Random made from a whole number; the same seed gives the same sequence. Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  // A Weyl sequence stepped by the golden ratio, each step mixed by two multiplications: 32 well-spread bits.
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0
    let bits = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97)
    return (bits ^ (bits >>> 15)) >>> 0
  }
  return () => next() / 2 ** 32
}
