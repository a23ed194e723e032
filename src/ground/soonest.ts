// Of instants that may never come, which one does first.
/** The least of these instants or spans of time, null being never; null when all of them are, and of none. */
export function soonest(all: readonly (number | null)[]): number | null {
  const least = Math.min(...all.map((ms) => ms ?? Number.POSITIVE_INFINITY))
  return least === Number.POSITIVE_INFINITY ? null : least
}
