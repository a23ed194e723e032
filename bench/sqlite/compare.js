// Runs variants of one thing in turns, slice by slice, so that whatever disturbs the machine disturbs all of them.
import { median } from '../limits/figures.js'

/**
 * @typedef {object} Variant
 * @property {string} name
 * @property {Record<string, () => void>} phases run in order, timed each for itself
 * @property {() => void} [between] runs after each slice, not timed
 * @property {() => void} close
 */

/** Slices before anything is noted: caches and compilers warm up. */
const warm = 4

const cpuUs = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/**
 * CPU per item of every phase and of their sum: the median, and the median of its ratio to the first variant's slice of
 * the same turn. CPU, not time: on a shared machine only that says what the code costs.
 * @param {string} title
 * @param {Variant[]} variants the first one is what the engine does
 * @param {{ slices?: number, items: number }} size
 */
export function compare(title, variants, { slices = 40, items }) {
  const figures = variants.map(() => /** @type {Record<string, number[]>} */ ({}))
  for (let slice = -warm; slice < slices; slice++) {
    for (let turn = 0; turn < variants.length; turn++) {
      const at = (turn + slice + warm) % variants.length
      const variant = /** @type {Variant} */ (variants[at])
      let sum = 0
      for (const [phase, run] of Object.entries(variant.phases)) {
        const start = cpuUs()
        run()
        const cost = (cpuUs() - start) / items
        sum += cost
        if (slice >= 0) note(figures[at], phase, cost)
      }
      if (slice >= 0) note(figures[at], 'sum', sum)
      variant.between?.()
    }
  }
  for (const variant of variants) variant.close()
  print(title, variants, figures)
}

/** @param {Record<string, number[]> | undefined} into @param {string} phase @param {number} figure */
function note(into, phase, figure) {
  if (!into) return
  into[phase] ??= []
  into[phase].push(figure)
}

/** @param {string} title @param {Variant[]} variants @param {Record<string, number[]>[]} figures */
function print(title, variants, figures) {
  const width = Math.max(...variants.map(({ name }) => name.length))
  console.log(`\n${title}, CPU µs each and its ratio to the first`)
  for (let i = 0; i < variants.length; i++) {
    const cells = Object.entries(figures[i] ?? {}).map(([phase, own]) => {
      const base = figures[0]?.[phase] ?? []
      const ratio = median(own.map((figure, slice) => figure / (base[slice] ?? Number.NaN)))
      return `${phase} ${median(own).toFixed(2).padStart(6)} x${ratio.toFixed(2)}`
    })
    console.log(`  ${variants[i]?.name.padEnd(width)}  ${cells.join('   ')}`)
  }
}
