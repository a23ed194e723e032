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

/** Letters to change, add, drop or swap with their neighbour to make `b` of `a`. */
function edits(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  let before = row
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swaps ? (before[j - 2] ?? 0) + 1 : change
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? Number.POSITIVE_INFINITY
}
