// Plants bugs into a copy of what was built, so that those who check the product can show that they would notice.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** One wrong place: `text` of the built `file`, which stands there exactly once, is replaced. */
export interface Edit {
  file: string
  text: string
  by: string
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Calls `use` with the folder of a copy that has the edits; the copy is gone afterwards. */
export async function withCopy<T>(edits: readonly Edit[], use: (folder: URL) => Promise<T>): Promise<T> {
  const { folder, remove } = copyOf(edits)
  try {
    return await use(folder)
  } finally {
    remove()
  }
}

/** A copy that has the edits, until it is removed. */
export function copyOf(edits: readonly Edit[]): { folder: URL; remove: () => void } {
  // Inside node_modules: git and the tidy rules look past it, and the copy finds the packages it imports.
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'planted-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const filter = (path: string) => statSync(path).isDirectory() || path.endsWith('.js')
    cpSync(join(root, 'dist'), folder, { recursive: true, filter })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const edit of edits) plant(folder, edit)
  } catch (error) {
    remove()
    throw error
  }
  return { folder: pathToFileURL(`${folder}/`), remove }
}

function plant(folder: string, { file, text, by }: Edit): void {
  const path = join(folder, file)
  const before = readFileSync(path, 'utf8')
  const found = before.split(text).length - 1
  if (found !== 1) throw new Error(`"${text}" stands in ${file} once, not ${found} times: move the planted bug`)
  writeFileSync(
    path,
    before.replace(text, () => by),
  )
}
