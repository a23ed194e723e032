// The command `npm run sim`: plays seeds or a kept plan, tells their story, shrinks what fails and keeps it.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { hashOf } from './events.js'
import { builtHouse } from './house.js'
import { type Plan, planOf } from './plan.js'
import { shrink } from './shrink.js'
import { storyOf } from './story.js'
import { Coverage, type Trial, tryPlan } from './trial.js'

const usage = `npm run sim -- [--seed N | --plan FILE] [--count N] [--trace [--task ID]]
  --seed N     the first seed (default 1)
  --count N    how many seeds (default 200, with --trace 1)
  --plan FILE  plays a kept plan instead (test/simulation/seeds/*.json)
  --trace      tells what happened; --task ID tells of one task only (an id, or the number of an item)`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string' },
    plan: { type: 'string' },
    trace: { type: 'boolean', default: false },
    task: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const house = await builtHouse()
// Whoever reads only the first lines has had enough.
process.stdout.on('error', () => process.exit())

function tell({ plan, events, violations }: Trial): void {
  for (const line of storyOf(plan, events, violations, values.task ?? null)) console.log(line)
  console.log(`seed ${plan.seed}, ${events.length} events, hash ${hashOf(events)}, ${violations.length} violations`)
}

/** Shrinks a failing trial and writes its plan down, to be mended and then kept as a test. */
async function keep(failing: Trial): Promise<void> {
  const [first] = failing.violations
  console.log(`seed ${failing.plan.seed} breaks "${first?.law}": ${first?.text}`)
  const small = await shrink(failing, house)
  const { plan, violations } = small
  const file = new URL(`seeds/seed-${plan.seed}.json`, import.meta.url)
  const kept = { law: violations[0]?.law, text: violations[0]?.text, story: 'to be told', plan }
  writeFileSync(file, `${JSON.stringify(kept, null, 2)}\n`)
  const size = `${plan.faults.length} faults, ${plan.items.length} tasks, ${plan.acts.length} acts`
  console.log(`  shrunk to ${size}: npm run sim -- --plan test/simulation/seeds/seed-${plan.seed}.json --trace`)
}

async function play(from: number, count: number): Promise<void> {
  const coverage = new Coverage()
  const began = performance.now()
  let failed = 0
  let stopped = false
  // Whoever has waited long enough is told what was seen so far.
  process.once('SIGINT', () => {
    stopped = true
  })
  for (let seed = from; seed < from + count && !stopped; seed++) {
    const trial = await tryPlan(planOf(seed), house)
    coverage.add(trial)
    if (trial.violations.length > 0) {
      failed++
      await keep(trial)
    }
    if ((seed - from + 1) % 500 === 0) console.log(`${seed - from + 1} seeds, ${failed} failed`)
  }
  for (const line of coverage.lines()) console.log(line)
  const few = coverage.vacuous()
  for (const what of few) console.log(`VACUOUS ${what}`)
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  console.log(`${failed > 0 ? 'FAIL' : few.length > 0 ? 'VACUOUS' : 'PASS'}: ${failed} failed, ${seconds} s`)
  process.exitCode = failed > 0 || few.length > 0 ? 1 : 0
}

if (values.help) console.log(usage)
else if (values.plan !== undefined || values.trace) {
  const plan =
    values.plan === undefined
      ? planOf(Number(values.seed))
      : (JSON.parse(readFileSync(values.plan, 'utf8')) as { plan: Plan }).plan
  const trial = await tryPlan(plan, house)
  tell(trial)
  process.exitCode = trial.violations.length > 0 ? 1 : 0
} else await play(Number(values.seed), Number(values.count ?? 200))
