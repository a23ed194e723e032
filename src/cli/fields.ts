// Finds one field in JSON text without parsing it, so that a number of 20 digits reaches COMMAND as it was written.

/** The field's text: a string's value, all else as written; null when there is none. `a.b` goes down two levels. */
export function fieldText(json: string, name: string): string | null {
  // A column called "a.b" is meant before a path is.
  const range = member(json, 0, name) ?? (name.includes('.') ? along(json, name.split('.')) : null)
  if (range === null) return null
  const raw = json.slice(...range)
  return raw.startsWith('"') ? (JSON.parse(raw) as string) : raw
}

/** The whole item as text, by the same rule. */
export function itemText(json: string): string {
  const from = blank(json, 0)
  return json[from] === '"' ? (JSON.parse(json) as string) : json
}

type Range = [from: number, to: number]

function along(json: string, path: readonly string[]): Range | null {
  let range: Range | null = [0, json.length]
  for (const name of path) {
    if (range === null) return null
    range = member(json, range[0], name)
  }
  return range
}

/** Where the value of `name` stands in the object that starts at `from`; of double keys the last, as JSON has it. */
function member(json: string, from: number, name: string): Range | null {
  let found: Range | null = null
  let at = blank(json, from)
  if (json[at] !== '{') return null
  at = blank(json, at + 1)
  while (json[at] === '"') {
    const keyEnd = stringEnd(json, at)
    const raw = json.slice(at + 1, keyEnd - 1)
    const key = raw.includes('\\') ? JSON.parse(`"${raw}"`) : raw
    const valueFrom = blank(json, blank(json, keyEnd) + 1)
    const valueTo = valueEnd(json, valueFrom)
    if (key === name) found = [valueFrom, valueTo]
    at = blank(json, valueTo)
    if (json[at] === ',') at = blank(json, at + 1)
  }
  return found
}

function blank(json: string, from: number): number {
  let at = from
  while (json.charCodeAt(at) <= 0x20) at++
  return at
}

function stringEnd(json: string, from: number): number {
  let at = from + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

/** The text is known to be valid JSON, so that brackets only have to be counted. */
function valueEnd(json: string, from: number): number {
  if (json[from] === '"') return stringEnd(json, from)
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const char = json[at]
    if (char === '"') at = stringEnd(json, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') {
      if (depth === 0) return trimmed(json, from, at)
      depth--
      if (depth === 0) return at + 1
    } else if (char === ',' && depth === 0) return trimmed(json, from, at)
  }
  return json.length
}

function trimmed(json: string, from: number, to: number): number {
  let end = to
  while (end > from && json.charCodeAt(end - 1) <= 0x20) end--
  return end
}
