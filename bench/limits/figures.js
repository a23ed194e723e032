// The arithmetic of the benches: medians and quantiles, nothing cleverer.

/** The value below which the share `q` (0 to 1) of the figures lies; NaN when there are none. */
export function quantile(/** @type {readonly number[]} */ figures, /** @type {number} */ q) {
  const sorted = [...figures].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

export const median = (/** @type {readonly number[]} */ figures) => quantile(figures, 0.5)
