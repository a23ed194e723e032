// One bug of the SQLite engine that the random histories must notice, and the engine of a copy that has it.
import type { EngineFor } from '../engine/subject.js'
import { withCopy } from '../planting/copy.js'

/** One wrong place; `file` is of the SQLite engine's folder, or of what every engine decides alike (`../`). */
export interface Planted {
  bug: string
  file: string
  text: string
  by: string
  /** Shows only where two handles share a file. */
  handles2?: true
}

/** Runs `use` with the engine of a copy that has the bug; the copy is gone afterwards. */
export function withPlanted<T>(planted: Planted, use: (engineFor: EngineFor) => Promise<T>): Promise<T> {
  const { file, text, by } = planted
  return withCopy([{ file: `engines/sqlite/${file}`, text, by }], async (folder) => {
    const copy = (await import(new URL('engines/open.js', folder).href)) as { engineFor: EngineFor }
    return use(copy.engineFor)
  })
}
