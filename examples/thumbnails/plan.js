// What is to be done: every picture at every width, and one truncated file that nobody can scale.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const pictures = join(here, 'pictures')

/** Pixels; the pictures themselves are 256 wide. */
export const widths = [16, 32, 48, 64, 96, 128, 192, 256]
export const truncated = join(here, 'truncated.jpg')

/**
 * One item for each thumbnail to be, the truncated file first; each knows the path of its output, so that whoever does
 * it again writes the same file.
 * @param {string} folder where the thumbnails go
 */
export function planItems(folder) {
  const item = (/** @type {string} */ picture, /** @type {number} */ width) => {
    const name = `${basename(picture, '.jpg')}@${width}.webp`
    return { name, picture, width, output: join(folder, name) }
  }
  const files = readdirSync(pictures).filter((file) => file.endsWith('.jpg'))
  const whole = files.sort().flatMap((file) => widths.map((width) => item(join(pictures, file), width)))
  return [item(truncated, 128), ...whole]
}
