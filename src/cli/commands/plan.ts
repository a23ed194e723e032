// `piecework plan`: the sizing arithmetic of a pile of work, forwards and backwards; needs no store.
import type { Command } from 'commander'
import { PieceworkError } from '../../ground/errors.js'
import { type Plan, type PlanAsk, plan } from '../../insight/planner.js'
import { shown } from '../../task/limits.js'
import { grouped, humanMs } from '../print.js'
import { acts } from '../program.js'
import { duration, whole } from '../values.js'

export function planCommand(program: Command): void {
  const command = program
    .command('plan')
    .description('how many workers a pile of work needs, or how long so many take, and what binds')
    .requiredOption('--items <n>', 'how many tasks')
    .requiredOption('--each <duration>', 'how long one takes, on average')
    .option('--deadline <duration>', 'answers how many workers it takes to be done by then')
    .option('--workers <n>', 'answers how long so many take; a worker is one slot of --concurrency')
    .option('--failure-rate <share>', 'of the deliveries, 0 to below 1; each that fails is made again')
    .option('--each-p99 <duration>', 'how long the longest of a hundred takes')
    .option('--enqueue-rate <n>', 'tasks a second that the producers put in')
    .option('--dispatch-rate <n>', 'deliveries a second that the store can hand out')
    .option('--downstream-rate <n>', 'deliveries a second that what the tasks call can take')
  acts(command, async ({ output }, _args, options) => {
    const ask = askOf(options as Record<string, string | undefined>)
    const found = plan(ask)
    if (output.json) await output.value(found)
    else await output.result(told(ask, found))
    return 0
  })
}

function askOf(options: Record<string, string | undefined>): PlanAsk {
  const given = <T>(option: string, text: string | undefined, read: (option: string, text: string) => T) =>
    text === undefined ? undefined : read(option, text)
  const many = (option: string, text: string) => whole(option, text, 1, Number.MAX_SAFE_INTEGER)
  if ((options.deadline === undefined) === (options.workers === undefined)) {
    throw new PieceworkError('PW_USAGE', 'plan needs --deadline or --workers, and not both.')
  }
  return {
    items: many('--items', options.items ?? ''),
    eachMs: duration('--each', options.each ?? ''),
    eachP99Ms: given('--each-p99', options.eachP99, duration),
    deadlineMs: given('--deadline', options.deadline, duration),
    workers: given('--workers', options.workers, many),
    failureRate: given('--failure-rate', options.failureRate, number),
    enqueuePerSecond: given('--enqueue-rate', options.enqueueRate, number),
    dispatchPerSecond: given('--dispatch-rate', options.dispatchRate, number),
    downstreamPerSecond: given('--downstream-rate', options.downstreamRate, number),
  }
}

function number(option: string, text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  throw new PieceworkError('PW_OPTION_INVALID', `${option} is ${shown(text)}; it must be a number such as 0.1 or 200.`)
}

const bound: Record<Plan['binds'], string> = {
  workers: 'the workers bind: more of them would end it sooner',
  producers: 'the producers bind: the tasks do not come in faster',
  broker: 'the store binds: it does not hand out faster',
  downstream: 'what is downstream binds: it does not take more',
}

function told(ask: PlanAsk, found: Plan): string {
  const { workers, durationMs, binds, meetsDeadline, workersUsefulMax, deliveries, itemsPerSecond } = found
  const done = `${grouped(workers)} ${workers === 1 ? 'worker does' : 'workers do'} ${grouped(ask.items)} tasks`
  const lines = [`${done} in ${humanMs(durationMs)}, ${grouped(itemsPerSecond)} a second; ${bound[binds]}.`]
  if (deliveries > ask.items) lines.push(`Counted with the failures that is ${grouped(deliveries)} deliveries.`)
  if (meetsDeadline === false) {
    lines.push(`The deadline of ${humanMs(ask.deadlineMs ?? 0)} cannot be met, whatever the number of workers.`)
  }
  lines.push(`More than ${grouped(workersUsefulMax)} would not end it sooner.`)
  return lines.join('\n')
}
