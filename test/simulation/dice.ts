// Everything that a seed decides is thrown with these.
import type { Random } from '../../dist/ground/clock.js'

export class Dice {
  constructor(readonly random: Random) {}
  pick = <const T>(...choices: readonly T[]): T => choices[Math.floor(this.random() * choices.length)] as T
  chance = (share: number): boolean => this.random() < share
  between = (low: number, high: number): number => Math.round(low + this.random() * (high - low))
  times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
}
