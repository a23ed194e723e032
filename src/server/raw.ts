// Cuts values out of JSON text as they were written, so that no number is rounded between a client and the store.

/** The text of each member of the object at `from`; of equal keys the last, as for the parser. Valid JSON only. */
export function rawMembers(text: string, from = 0): Map<string, string> {
  const members = new Map<string, string>()
  for (let at = skip(text, skip(text, from) + 1); text[at] !== '}'; ) {
    const keyEnd = valueEnd(text, at)
    const start = skip(text, skip(text, keyEnd) + 1)
    const end = valueEnd(text, start)
    members.set(JSON.parse(text.slice(at, keyEnd)) as string, text.slice(start, end))
    at = skip(text, end)
    if (text[at] === ',') at = skip(text, at + 1)
  }
  return members
}

/** The text of each element of the array at `from`. */
export function rawElements(text: string, from = 0): string[] {
  const elements: string[] = []
  for (let at = skip(text, skip(text, from) + 1); text[at] !== ']'; ) {
    const end = valueEnd(text, at)
    elements.push(text.slice(at, end))
    at = skip(text, end)
    if (text[at] === ',') at = skip(text, at + 1)
  }
  return elements
}

/** The object's JSON with the text of one more field, as it stands. */
export function withRaw(shape: Record<string, unknown>, field: string, text: string): string {
  const head = JSON.stringify(shape).slice(0, -1)
  return `${head}${head === '{' ? '' : ','}"${field}":${text}}`
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function skip(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code === 32 || (code >= 9 && code <= 13); code = text.charCodeAt(++at));
  return at
}

/** Where the value that begins at `from` ends. */
function valueEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) {
      for (at++; text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++
      if (depth === 0) return at + 1
    } else if (code === 0x5b || code === 0x7b) depth++
    else if (code === 0x5d || code === 0x7d) {
      // The end of what stands around a number or a word, or of the value itself.
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (code === 0x2c || code === 0x3a || code === 32 || (code >= 9 && code <= 13))) return at
  }
  return text.length
}
