// How a bug is planted for the simulation: where, what it is, and the law that has to object to it.
import type { Edit } from '../planting/copy.js'

export interface Planted {
  bug: string
  law: string
  edits: readonly Edit[]
}

export const sqlite = (file: string, text: string, by: string): Edit => ({ file: `engines/sqlite/${file}`, text, by })
export const both = (file: string, text: string, by: string): Edit => ({ file: `engines/${file}`, text, by })
export const worker = (file: string, text: string, by: string): Edit => ({ file: `worker/${file}`, text, by })
export const plant = (law: string, bug: string, ...edits: Edit[]): Planted => ({ bug, law, edits })
