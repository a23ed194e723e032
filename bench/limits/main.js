// Sets the product beside a program with the same statements and durability and no product: `npm run bench`.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { counted } from './counting.js'
import { machineFacts } from './machine.js'
import { printReport, summary } from './report.js'
import { measureLatency, measureLifeCycle, measureOneByOne, Pile } from './scenarios.js'
import { subjects } from './subjects.js'

const usage = `npm run bench -- [--quick] [--json] [--rounds N] [--tasks N] [--dir FOLDER]
  --quick   a tenth of the work: says whether something broke, not how fast it is
  --json    one object instead of the table
  --rounds  default 5, quick 3; every round runs all subjects, in turns
  --tasks   tasks in one drain, default 100000
  --dir     where the files go, default the system's temporary folder; must lie on a real disk`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    tasks: { type: 'string' },
    dir: { type: 'string', default: tmpdir() },
    help: { type: 'boolean', default: false },
  },
})

/** Tasks of each scenario. */
const sizes = {
  pile: Number(values.tasks ?? (values.quick ? 5000 : 100_000)),
  single: values.quick ? 2000 : 15_000,
  latency: values.quick ? 40 : 120,
}
/** Fewer, where statements are counted: what a task costs does not depend on how many there are. */
const countedSizes = { pile: 5000, single: 2000 }
const perSecond = 50

/**
 * @typedef {import('./subjects.js').Store} Store
 * @typedef {import('./scenarios.js').Throughput} Throughput
 * @typedef {(store: Store) => Promise<void>} Scenario
 */

const folder = mkdtempSync(join(values.dir, 'piecework-bench-'))
let stores = 0

/** Runs a scenario on a new, empty store of its own. */
async function onNewStore(/** @type {typeof subjects[number]} */ subject, /** @type {Scenario} */ scenario) {
  const place = join(folder, String(stores++))
  mkdirSync(place)
  const store = await subject.open(join(place, 'store.db'))
  await scenario(store)
  await store.close()
  rmSync(place, { recursive: true })
}

/** Everything that is timed, each scenario for all subjects in turns, so that a disturbance hits all of them. */
async function round(/** @type {number} */ number, /** @type {import('./report.js').Samples} */ samples) {
  const each = async (/** @type {(store: Store, subject: string) => Promise<void>} */ scenario) => {
    for (let i = 0; i < subjects.length; i++) {
      const subject = /** @type {typeof subjects[number]} */ (subjects[(i + number) % subjects.length])
      await onNewStore(subject, (store) => scenario(store, subject.name))
    }
  }
  await each(async (store, subject) => {
    samples.throughput.push({ scenario: 'one by one', subject, ...(await measureOneByOne(store, sizes.single)) })
  })
  for (const concurrency of [10, 100]) {
    await each(async (store, subject) => {
      const pile = new Pile(store, sizes.pile)
      samples.throughput.push({ scenario: 'bulk 1000', subject, ...(await pile.fill()) })
      samples.throughput.push({
        scenario: `drain, ${concurrency} handlers`,
        subject,
        ...(await pile.drain(concurrency)),
      })
    })
  }
  await each(async (store, subject) => {
    samples.throughput.push({ scenario: 'life cycle', subject, ...(await measureLifeCycle(store, sizes.single)) })
  })
  await each(async (store, subject) => {
    samples.latency.push({ subject, ...(await measureLatency(store, sizes.latency, perSecond)) })
  })
}

/** What each task asks of SQLite and the disk, by scenario and subject. */
async function countAll() {
  /** @type {import('./report.js').Counts[]} */
  const counts = []
  for (const subject of subjects) {
    const add = async (/** @type {string} */ scenario, /** @type {number} */ tasks, work) => {
      counts.push({ scenario, subject: subject.name, tasks, ...(await counted(work)) })
    }
    await onNewStore(subject, (store) =>
      add('one by one', countedSizes.single, () => measureOneByOne(store, countedSizes.single)),
    )
    for (const concurrency of [10, 100]) {
      await onNewStore(subject, async (store) => {
        const pile = new Pile(store, countedSizes.pile)
        await add('bulk 1000', countedSizes.pile, () => pile.fill())
        await add(`drain, ${concurrency} handlers`, countedSizes.pile, () => pile.drain(concurrency))
      })
    }
    await onNewStore(subject, (store) =>
      add('life cycle', countedSizes.single, () => measureLifeCycle(store, countedSizes.single)),
    )
  }
  return counts
}

async function main() {
  if (values.help) return console.log(usage)
  const began = performance.now()
  const machine = await machineFacts(folder)
  // Counting first: it warms up what is timed after it.
  const counts = await countAll()
  /** @type {import('./report.js').Samples} */
  const samples = { throughput: [], latency: [] }
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 5))
  for (let number = 0; number < rounds; number++) await round(number, samples)
  const seconds = (performance.now() - began) / 1000
  const found = { machine, sizes, rounds, seconds, ...summary(samples, counts) }
  if (values.json) console.log(JSON.stringify(found))
  else printReport(found)
}

try {
  await main()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
