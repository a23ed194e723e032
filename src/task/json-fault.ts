// Finds where text stops being JSON, because what a parser says of it differs from one version to the next.

/** Runs to the first character that cannot stand where it stands. */
class Reader {
  #at = 0

  constructor(private readonly text: string) {}

  /** The offset of the first character that is wrong, the text's length when it ends too early; null for JSON. */
  fault(): number | null {
    return this.#value() && this.#skip(/[ \t\r\n]*/y) && this.#at === this.text.length ? null : this.#at
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.text)
    if (found === null) return false
    this.#at += found[0].length
    return true
  }

  /** True when the text goes on with these characters; stops at the first that differs. */
  #word(word: string): boolean {
    for (const char of word) {
      if (this.text[this.#at] !== char) return false
      this.#at++
    }
    return true
  }

  #is(char: string): boolean {
    this.#skip(/[ \t\r\n]*/y)
    return this.#word(char)
  }

  #value(): boolean {
    if (this.#is('{')) return this.#list('}', () => this.#isString() && this.#is(':') && this.#value())
    if (this.#is('[')) return this.#list(']', () => this.#value())
    const next = this.text[this.#at] ?? ''
    if (next === '"') return this.#isString()
    const word = ['true', 'false', 'null'].find((one) => one.startsWith(next) && next !== '')
    if (word !== undefined) return this.#word(word)
    return this.#skip(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y)
  }

  #list(end: string, member: () => boolean): boolean {
    if (this.#is(end)) return true
    do if (!member()) return false
    while (this.#is(','))
    return this.#is(end)
  }

  #isString(): boolean {
    if (!this.#is('"')) return false
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what no string may hold
    while (this.#skip(/[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y));
    return this.#word('"')
  }
}

/** Where and how the text is no JSON, for an error: `at offset 6: "}" cannot stand there`. */
export function jsonFault(text: string): { offset: number; why: string } | null {
  const offset = new Reader(text).fault()
  if (offset === null) return null
  const char = String.fromCodePoint(text.codePointAt(offset) ?? 0)
  const why = offset === text.length ? 'it ends too early' : `${JSON.stringify(char)} cannot stand there`
  return { offset, why }
}
