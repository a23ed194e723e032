// `piecework work`: works on queues with a handler file or a COMMAND, in one process or several.
import { writeSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { checkName } from '../../task/limits.js'
import type { Manner } from '../call.js'
import { lookUp } from '../child.js'
import { serveHealth } from '../health.js'
import { template } from '../placeholders.js'
import { errorText, exitOf, type Output } from '../print.js'
import { type Act, acts, type Context } from '../program.js'
import { startStaff } from '../staff.js'
import { type Store, withStore } from '../store.js'
import { duration, whole } from '../values.js'
import { handlerIn, type Shift, startWork, type WorkPlan } from '../work.js'

interface Given {
  handler?: string
  concurrency?: string
  workers?: string
  types?: string
  grace?: string
  untilDrained?: boolean
  health?: string
}

export function workCommand(program: Command): void {
  const command = program
    .command('work')
    .description('work on queues with a handler file or a COMMAND')
    .usage('[options] QUEUE... (--handler FILE | -- COMMAND [ARG...])')
    .argument('<queue...>', 'the queues')
    .option('--handler <file>', 'a module whose default export is a function, or an object of functions by type')
    .option('--concurrency <n>', 'tasks at once, for each queue and process', '10')
    .option('--workers <n>', 'so many processes')
    .option('--types <types>', 'claim only these types, separated by commas')
    .option('--grace <duration>', 'how long running tasks may go on when it is stopped', '25s')
    .option('--until-drained', 'end when nothing is left: 0, or 1 with dead letters')
    .option('--health <[host:]port>', 'answer /healthz and /readyz here')
    .addHelpText('after', more)
  acts(command, act)
}

const more = `
COMMAND gets the payload as JSON on its standard input, or by {} (all of it), {field} and {a.b} in its words; in its
environment PIECEWORK_ID, _QUEUE, _TYPE, _BATCH, _KEY, _DELIVERY, _DELIVERIES_MAX, _FENCE. How it ends:
  0  done                  65  bad data: dead at once   75  not now: again later, not counted
  any other, or a signal   again after a while, until the deliveries of the queue's policy are spent, then dead

Examples:
  piecework work mail --handler ./mail.js --workers 4
  piecework work images --until-drained -- convert {from} {to}`

const act: Act = async (context, args, options) => {
  const given = options as Given
  const plan = await planOf(args[0] as string[], given, context)
  const count = given.workers === undefined ? 1 : whole('--workers', given.workers, 1, 1000)
  if (given.workers !== undefined) {
    return over(startStaff(systemClock, count, ownWords(), context.output), given, context.output)
  }
  return withStore(context.url, { create: true }, async (store) => {
    const { file, url } = store
    context.output.say(`piecework: working on ${plan.queues.join(', ')} in ${file ?? url}, ${plan.concurrency} at once`)
    await nameNew(store, plan.queues, context.output)
    const shift = startWork(store, plan, context.output)
    void tellParent(shift)
    return over(shift, given, context.output)
  })
}

/** A name that is not there yet is one to come, or a slip. */
async function nameNew({ engine }: Store, queues: readonly string[], output: Output): Promise<void> {
  for (const name of queues) {
    const { items } = await engine.select('queue', { name }, null)
    if (items.length === 0) output.say(`piecework: there is no queue ${name} yet; it is made now`)
  }
}

async function planOf(names: readonly string[], given: Given, { after, url, urlGiven }: Context): Promise<WorkPlan> {
  const queues = names.map((name) => checkName('queue name', name))
  if ((given.handler === undefined) === (after === null)) {
    throw new PieceworkError('PW_USAGE', 'Say who does the work: either --handler FILE or -- COMMAND.')
  }
  return {
    queues,
    by:
      given.handler === undefined
        ? { manner: mannerOf(after ?? []) }
        : { handler: await handlerIn(resolve(given.handler)) },
    concurrency: whole('--concurrency', given.concurrency ?? '10', 1, 10_000),
    graceMs: duration('--grace', given.grace ?? '25s'),
    types: given.types?.split(',').map((type) => checkName('--types', type)),
    untilDrained: given.untilDrained === true,
    url: urlGiven ? ['--url', url] : [],
  }
}

/** Payloads are JSON: they reach COMMAND by fields in its words, or on its standard input. */
function mannerOf(words: readonly string[]): Manner {
  const made = template(words, { fields: true })
  const file = made.variable ? null : lookUp(words[0] ?? '')
  return { template: made, format: 'ndjson', by: made.placed ? 'place' : 'stdin', file, timeoutMs: null }
}

/** The words of one process of several: ours, without those that are for the parent alone. */
function ownWords(): string[] {
  const words = process.argv.slice(2)
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const kept: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const ours = at < end ? /^--(workers|health)(=|$)/.exec(word) : null
    if (ours === null) kept.push(word)
    else if (ours[2] === '') at++
  }
  return kept
}

/** Stops on signals and when a parent goes; serves probes; resolves with the exit code when all work has ended. */
async function over(shift: Shift, given: Given, output: Output): Promise<number> {
  const stop = (signal?: NodeJS.Signals) => shift.stop(signal)
  const orphaned = () => shift.stop()
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, stop)
  process.on('disconnect', orphaned)
  process.on('exit', endedEarly)
  const health = given.health === undefined ? null : await serveHealth(given.health, shift.ready)
  if (health !== null) output.say(`piecework: health on ${health.url}`)
  try {
    return await shift.ended
  } finally {
    health?.close()
    for (const signal of signals) process.off(signal, stop)
    process.off('disconnect', orphaned)
    process.off('exit', endedEarly)
  }
}

/** Without this the code that a handler gave the process would pass for how the work ended. */
function endedEarly(): void {
  const error = new PieceworkError('PW_PROCESS_ENDED', 'The process ended before its work was over.')
  process.exitCode = exitOf(error)
  writeSync(process.stderr.fd, `${errorText(error, false)}\n`)
}

/** Says so once all workers are ready, when a parent counts them. */
async function tellParent(shift: Shift): Promise<void> {
  if (process.send === undefined) return
  const look = () => {
    if (shift.ready()) process.send?.('ready')
    else systemClock.after(20, look)
  }
  look()
}
