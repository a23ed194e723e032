// Plants one bug into a copy of what was built, so that the histories can show that they notice it.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { EngineFor } from '../engine/subject.js'
import { must } from './model.js'

/** One wrong place in the SQLite engine, or in what every engine decides alike (`../`): `text` of the built `file`,
 * which stands there exactly once, is replaced. */
export interface Planted {
  bug: string
  file: string
  text: string
  by: string
  /** Shows only where two handles share a file. */
  handles2?: true
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Runs `use` with the engine of a copy that has the bug; the copy is gone afterwards. */
export async function withPlanted<T>(planted: Planted, use: (engineFor: EngineFor) => Promise<T>): Promise<T> {
  // Inside node_modules: git and the tidy rules look past it, and the copy finds the packages it imports.
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'planted-'))
  try {
    for (const floor of ['ground', 'task', 'engine', 'engines']) {
      cpSync(join(root, 'dist', floor), join(folder, floor), { recursive: true })
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const file = join(folder, 'engines', 'sqlite', planted.file)
    const text = readFileSync(file, 'utf8')
    const found = text.split(planted.text).length - 1
    must(found === 1, `"${planted.text}" stands in ${planted.file} once, not ${found} times: move the planted bug`)
    writeFileSync(
      file,
      text.replace(planted.text, () => planted.by),
    )
    const copy = (await import(pathToFileURL(join(folder, 'engines', 'open.js')).href)) as { engineFor: EngineFor }
    return await use(copy.engineFor)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
