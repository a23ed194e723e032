// Which file a store's name leads to: links are followed, and a file with a second name is refused.
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PieceworkError } from '../../ground/errors.js'

/**
 * The file itself, where SQLite keeps its log beside it; a name that does not exist yet is answered as it is. Throws
 * PW_STORE_MISSING for a link to nowhere and PW_STORE_LINKED where a second name would lead to another log.
 */
export function placeOf(name: string): string {
  if (name === ':memory:') return name
  const found = statSync(name, { throwIfNoEntry: false })
  if (found?.isFile()) return singleName(realpathSync(name), found.nlink)
  if (found === undefined && lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new PieceworkError('PW_STORE_MISSING', `${name} is a link to a file that does not exist.`, { file: name })
  }
  return name
}

function singleName(file: string, names: number): string {
  const why = names > 1 ? `has ${names} names (hard links)` : isMounted(file) ? 'is mounted by itself' : null
  if (why === null) return file
  throw new PieceworkError('PW_STORE_LINKED', `${file} ${why}.`, { file })
}

/** True of a file that was mounted without its folder, as containers can do. */
function isMounted(file: string): boolean {
  if (process.platform !== 'linux') return false
  try {
    // The folder may be reached by another name than the table of mounts has; the last part of the name may not.
    const path = join(realpathSync(dirname(file)), basename(file))
    const points = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
    return points.some(
      (point) => point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8))) === path,
    )
  } catch {
    return false
  }
}
