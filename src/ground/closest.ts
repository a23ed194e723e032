// Finds the known word that a misspelled one was meant to be.

/** The candidate within two edits of `word` (one if it has under five letters), ignoring case; null for none. */
export function closest(word: string, candidates: readonly string[]): string | null {
  let best: string | null = null
  let bestEdits = word.length < 5 ? 1.5 : 2.5
  for (const candidate of candidates) {
    const distance = edits(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestEdits) {
      best = candidate
      bestEdits = distance
    }
  }
  return best
}

function edits(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? Number.POSITIVE_INFINITY
}
