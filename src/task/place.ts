// Where a task stands among the claimable: one number, the lowest first.

/** The instant it is due, ms, less its head start: each step of priority is worth `headStartMs`. */
export const placeOf = (dueAt: number, priority: number, headStartMs: number): number => dueAt - priority * headStartMs
