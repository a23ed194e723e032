// From samples to the table and the object: medians, and ratios taken pair by pair within a round.
import { median, quantile } from './figures.js'

/**
 * @typedef {import('./scenarios.js').Throughput & { scenario: string, subject: string }} Sample
 * @typedef {{ throughput: Sample[], latency: (import('./scenarios.js').Latencies & { subject: string })[] }} Samples
 * @typedef {object} Counts
 * @property {string} scenario
 * @property {string} subject
 * @property {number} tasks
 * @property {number} statements
 * @property {number} transactions
 * @property {number} syncs
 */

const baseline = 'limit'

/**
 * Median of limit / subject over the pairs of a round: 1 is as good as the limit, 0.5 takes twice as long.
 * @template T
 * @param {T[]} own
 * @param {T[]} limit
 * @param {(sample: T) => number} cost
 */
const ratioOf = (own, limit, cost) => median(own.map((sample, i) => cost(/** @type {T} */ (limit[i])) / cost(sample)))

/** @param {Samples} samples @param {Counts[]} counts */
export function summary(samples, counts) {
  const scenarios = [...new Set(samples.throughput.map(({ scenario }) => scenario))]
  const names = [...new Set(samples.throughput.map(({ subject }) => subject))].sort(
    (a, b) => order.indexOf(a) - order.indexOf(b),
  )
  const throughput = scenarios.flatMap((scenario) =>
    names.map((subject) => {
      const of = (/** @type {string} */ name) =>
        samples.throughput.filter((sample) => sample.scenario === scenario && sample.subject === name)
      const own = of(subject)
      const mid = (/** @type {(sample: Sample) => number} */ read) => median(own.map(read))
      return {
        scenario,
        subject,
        perSecond: mid(({ tasks, seconds }) => tasks / seconds),
        ratio: ratioOf(own, of(baseline), ({ seconds }) => seconds),
        cpuUs: mid(({ cpuUs }) => cpuUs),
        cpuRatio: ratioOf(own, of(baseline), ({ cpuUs }) => cpuUs),
        loopP99Ms: mid(({ loopP99Ms }) => loopP99Ms),
        loopMaxMs: mid(({ loopMaxMs }) => loopMaxMs),
        ...perTask(counts.find((count) => count.scenario === scenario && count.subject === subject)),
      }
    }),
  )
  const latency = names.map((subject) => {
    const of = (/** @type {string} */ name) => samples.latency.filter((sample) => sample.subject === name)
    const own = of(subject)
    const all = (/** @type {'startMs' | 'ackMs'} */ field, /** @type {number} */ q) =>
      quantile(
        own.flatMap((sample) => sample[field]),
        q,
      )
    return {
      subject,
      startP50Ms: all('startMs', 0.5),
      startP99Ms: all('startMs', 0.99),
      ackP50Ms: all('ackMs', 0.5),
      ackP99Ms: all('ackMs', 0.99),
      startRatio: ratioOf(own, of(baseline), ({ startMs }) => median(startMs)),
      ackRatio: ratioOf(own, of(baseline), ({ ackMs }) => median(ackMs)),
    }
  })
  return { throughput, latency }
}

const order = [baseline, 'engine', 'library']

/** @param {Counts | undefined} counts */
function perTask(counts) {
  if (!counts) return { statements: Number.NaN, commits: Number.NaN, syncs: Number.NaN }
  const { tasks, statements, transactions, syncs } = counts
  return { statements: statements / tasks, commits: transactions / tasks, syncs: syncs / tasks }
}

const thousand = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const whole = (/** @type {number} */ figure) => thousand.format(figure)
const fine = (/** @type {number} */ figure) => figure.toFixed(2)

/** @param {(string | number)[][]} rows the first one is the head; the first two columns are text */
function printTable(rows) {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)))
  for (const row of rows) {
    const cells = row.map((cell, i) => String(cell)[i < 2 ? 'padEnd' : 'padStart'](widths[i] ?? 0))
    console.log(cells.join('  ').trimEnd())
  }
}

/** @param {ReturnType<typeof summary> & { machine: any, rounds: number, seconds: number }} found */
export function printReport({ machine, rounds, seconds, throughput, latency }) {
  const { cpu, cores, load1, node, sqlite, platform, syncP50Ms, syncP99Ms, inMemory } = machine
  console.log(`${cpu}, ${cores} cores (load ${fine(load1)}), ${platform}, node ${node}, SQLite ${sqlite}`)
  console.log(`fdatasync in ${machine.folder}: p50 ${fine(syncP50Ms)} ms, p99 ${fine(syncP99Ms)} ms`)
  if (inMemory) console.log('WARNING: that folder lies in memory; nothing here says anything about durable work.')
  console.log(`\nMedians of ${rounds} rounds; ratio = limit's time / subject's time, pair by pair; the aim is 0.6.\n`)
  const head = [
    '',
    '',
    'tasks/s',
    'ratio',
    'CPU µs',
    'ratio',
    'loop p99 ms',
    'max ms',
    'statements',
    'commits',
    'syncs',
  ]
  printTable([
    head,
    ...throughput.map((row) => [
      row.subject === baseline ? row.scenario : '',
      row.subject,
      whole(row.perSecond),
      fine(row.ratio),
      fine(row.cpuUs),
      fine(row.cpuRatio),
      fine(row.loopP99Ms),
      fine(row.loopMaxMs),
      fine(row.statements),
      row.commits.toFixed(4),
      row.syncs.toFixed(4),
    ]),
  ])
  console.log('\nCPU, statements, commits and syncs are per task. Loop: delay of the event loop above 1 ms.\n')
  printTable([
    ['latency at 50/s', '', 'start p50 ms', 'p99', 'ratio', 'durable ack p50 ms', 'p99', 'ratio'],
    ...latency.map((row) => [
      '',
      row.subject,
      fine(row.startP50Ms),
      fine(row.startP99Ms),
      fine(row.startRatio),
      fine(row.ackP50Ms),
      fine(row.ackP99Ms),
      fine(row.ackRatio),
    ]),
  ])
  console.log(`\n${whole(seconds)} s`)
}
