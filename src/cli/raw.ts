// Puts stored JSON text into a line of JSON as it stands, so that no number in it is rounded on its way out.

/** The object's JSON with one more field that holds `text`; text that is no JSON any more becomes a string. */
export function jsonWith(shape: Record<string, unknown>, field: string, text: string): string {
  const { [field]: _, ...rest } = shape
  const head = JSON.stringify(rest).slice(0, -1)
  return `${head}${head === '{' ? '' : ','}${JSON.stringify(field)}:${lineOf(text)}}`
}

function lineOf(text: string): string {
  try {
    JSON.parse(text)
  } catch {
    return JSON.stringify(text)
  }
  // Line breaks can only stand between values: inside a string they are escaped.
  return text.replace(/[\r\n]+/g, ' ')
}
