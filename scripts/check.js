// The gate: every stage with its name and its seconds, the same on a desk and on a build machine.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const testReport = new URL('../.reports/vitest.json', import.meta.url)
const limitMinutes = 30
const ci = process.argv.includes('--ci')

/** Cheap and common refusals first; a build machine runs them all and starts from nothing. */
const stages = [
  { name: 'build', command: ['npm', 'run', '--silent', 'build'] },
  { name: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
  { name: 'types', command: ['npm', 'run', '--silent', 'types'] },
  { name: 'test', command: ['npm', 'test'] },
  { name: 'api', command: ['npm', 'run', '--silent', 'api', '--', '--check'] },
  { name: 'knip', command: ['npm', 'run', '--silent', 'knip'] },
  { name: 'publint', command: ['npm', 'run', '--silent', 'publint'] },
  { name: 'attw', command: ['npm', 'run', '--silent', 'attw'] },
  { name: 'pack', command: ['npm', 'run', '--silent', 'pack:smoke'] },
]
const install = { name: 'install', command: ['npm', 'ci'] }

const began = performance.now()
const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`

let running
/** Ends the stage that runs now with everything it started. */
function stopStage(signal) {
  if (running?.pid === undefined) return
  try {
    process.kill(-running.pid, signal)
  } catch {
    // It ended by itself in this moment.
  }
}

/** Runs one stage without stdin, in a process group of its own; answers true when it succeeded. */
async function run({ name, command: [program = '', ...args] }) {
  console.log(`\n=== ${name}: ${[program, ...args].join(' ')}`)
  const start = performance.now()
  const code = await new Promise((resolve) => {
    running = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], detached: true })
    running.once('error', (error) => {
      console.error(error.message)
      resolve(127)
    })
    running.once('close', (status, signal) => resolve(status ?? signal))
  })
  running = undefined
  console.log(`=== ${name}: ${code === 0 ? 'ok' : `FAILED (${code})`} in ${seconds(start)}`)
  return code === 0
}

/** The sums of the test run; a test file that could not even be loaded counts as one failure. */
function testSums() {
  if (!existsSync(testReport)) return { passed: 0, failed: 1, note: 'the tests left no report' }
  const report = JSON.parse(readFileSync(testReport, 'utf8'))
  const unloaded = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0)
  return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded.length, note: '' }
}

/** Prints the sums as the last line, for whoever reads only that; answers true when tests ran and none failed. */
function printSums() {
  const { passed, failed, note } = testSums()
  if (note) console.log(note)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0
}

async function main() {
  rmSync(testReport, { force: true })
  const failed = []
  for (const stage of ci ? [install, ...stages] : stages) {
    if (await run(stage)) continue
    failed.push(stage.name)
    if (!ci || stage === install) break
  }
  console.log(`\n=== ${failed.length === 0 ? 'all stages ok' : `failed: ${failed.join(', ')}`} in ${seconds(began)}`)
  const testsPassed = !ci || printSums()
  process.exitCode = failed.length === 0 && testsPassed ? 0 : 1
}

setTimeout(() => {
  console.log(`\n=== FAILED: not done after ${limitMinutes} minutes`)
  stopStage('SIGKILL')
  if (ci) printSums()
  process.exit(1)
}, limitMinutes * 60_000).unref()

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    stopStage(signal)
    process.exit(130)
  })
}

await main()
