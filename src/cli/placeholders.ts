// Turns COMMAND's words and one item into the words of one call: {} and its kin anywhere inside a word.
import { posix } from 'node:path'
import { PieceworkError } from '../ground/errors.js'
import { fieldText } from './fields.js'

/** What a word is filled from. */
export interface Filling {
  /** The item as text: a line as it stood, a JSON string's value, otherwise the JSON text. */
  text: string
  /** The JSON text of a structured item; null for lines, where braces with a name are literal. */
  json: string | null
  /** Its number in the batch, from 1. */
  number: number
}

type Part = string | ((filling: Filling) => string)

/** COMMAND's words, taken apart once. */
export interface Template {
  /** True when a word refers to the item; otherwise the caller appends it or writes it to stdin. */
  readonly placed: boolean
  /** True when the first word does, so that COMMAND is known only with an item in hand. */
  readonly variable: boolean
  /** The words of one call; throws PW_FIELD_MISSING when the item lacks a field that a word names. */
  fill(filling: Filling): string[]
}

const withoutExtension = (path: string) => path.slice(0, path.length - posix.extname(path).length)

const fixed: Record<string, (filling: Filling) => string> = {
  '{.}': ({ text }) => withoutExtension(text),
  '{/}': ({ text }) => posix.basename(text),
  '{//}': ({ text }) => posix.dirname(text),
  '{/.}': ({ text }) => withoutExtension(posix.basename(text)),
  '{#}': ({ number }) => String(number),
}

/** A field has a letter or _ somewhere, so that a{2} stays what it is; blanks and $ keep awk's programs literal. */
const fieldShape = String.raw`\{(?=[^{}]*[\p{L}_])[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*\}`
/** The text as a regular expression that matches just that. */
export const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** `replace` is what stands for the item (default `{}`); `fields` says whether `{name}` refers to a field of it. */
export function template(
  words: readonly string[],
  options: { replace?: string | undefined; fields: boolean },
): Template {
  const { replace = '{}', fields } = options
  const shapes = [escaped(replace), ...Object.keys(fixed).map(escaped), ...(fields ? [fieldShape] : [])]
  const pattern = new RegExp(shapes.join('|'), 'gu')
  const taken = words.map((word) => partsOf(word, pattern, replace))
  const filled = (parts: readonly Part[]) => parts.some((part) => typeof part === 'function')
  return {
    placed: taken.some(filled),
    variable: filled(taken[0] ?? []),
    fill: (filling) =>
      taken.map((parts) => parts.map((part) => (typeof part === 'string' ? part : part(filling))).join('')),
  }
}

function partsOf(word: string, pattern: RegExp, replace: string): Part[] {
  const parts: Part[] = []
  let from = 0
  for (const match of word.matchAll(pattern)) {
    if (match.index > from) parts.push(word.slice(from, match.index))
    const [found] = match
    parts.push(found === replace ? ({ text }) => text : (fixed[found] ?? field(found.slice(1, -1))))
    from = match.index + found.length
  }
  if (from < word.length) parts.push(word.slice(from))
  return parts
}

function field(name: string): Part {
  return ({ json }) => {
    const text = json === null ? null : fieldText(json, name)
    if (text !== null) return text
    throw new PieceworkError('PW_FIELD_MISSING', `The item has no field "${name}".`, { field: name })
  }
}

/** The words as one line that a shell reads back as the same words. */
export function quoted(words: readonly string[]): string {
  return words
    .map((word) =>
      /^[\w%+,./:@=-]+$/.test(word) && !word.includes('\n') ? word : `'${word.replaceAll("'", "'\\''")}'`,
    )
    .join(' ')
}
