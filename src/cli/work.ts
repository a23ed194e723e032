// Works on queues until told to stop or nothing is left: the workers of one process, their signals and their end.
import { statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { errorTable, PieceworkError } from '../ground/errors.js'
import { planHandlers } from '../queue/handlers.js'
import type { Worker } from '../queue/seam.js'
import type { Handler } from '../task/handler.js'
import { Caller, type Manner, workWith } from './call.js'
import { Gate } from './gate.js'
import { Launch } from './launch.js'
import { Order } from './order.js'
import { quoted } from './placeholders.js'
import { counted, errorText, exitOf, grouped, type Output, warningText } from './print.js'
import { Progress, stderrScreen } from './progress.js'
import { Results } from './results.js'
import type { Store } from './store.js'

export interface WorkPlan {
  queues: readonly string[]
  /** A handler from a file, or how tasks reach COMMAND. */
  by: { handler: Handler<unknown> } | { manner: Manner }
  concurrency: number
  graceMs: number
  types: readonly string[] | undefined
  untilDrained: boolean
  /** The words that name the store in a command to paste; none where nobody named it. */
  url: readonly string[]
}

/** What others may ask about a process that works. */
export interface Shift {
  /** True when every worker claims and its last claim was answered. */
  ready(): boolean
  ended: Promise<number>
  /** First: no new claims, running ones get the grace time. Again: they get none. */
  stop(signal?: NodeJS.Signals): void
}

/** The default export of a handler file; throws PW_HANDLER_UNREADABLE, PW_HANDLER_INVALID. */
export async function handlerIn(file: string): Promise<Handler<unknown>> {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) {
    const why = stat === undefined ? 'does not exist' : 'is no file'
    throw new PieceworkError('PW_HANDLER_UNREADABLE', `${file} ${why}.`, { file })
  }
  let loaded: { default?: unknown }
  try {
    loaded = await import(pathToFileURL(file).href)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const text = `${file} cannot be loaded: ${why}`
    throw new PieceworkError('PW_HANDLER_UNREADABLE', text, { file }, { cause: error })
  }
  const handler = loaded.default
  try {
    planHandlers(handler, null, undefined)
  } catch (error) {
    const why = (error as Error).message
    throw new PieceworkError('PW_HANDLER_INVALID', `The default export of ${file}: ${why}`, { file }, { cause: error })
  }
  return handler as Handler<unknown>
}

/** Starts the workers; the store stays open until `ended` has resolved. */
export function startWork(store: Store, plan: WorkPlan, output: Output): Shift {
  const { clock, client } = store
  const { concurrency, graceMs, types } = plan
  let failed: PieceworkError | null = null
  let signals = 0
  const over = new AbortController()
  const caller = 'manner' in plan.by ? callerFor(store, plan.by.manner, plan, output, (error) => fail(error)) : null
  const workers = plan.queues.map((queue): Worker => {
    if (caller !== null) return workWith(store, queue, caller, { concurrency, graceMs, types })
    return client.queue(queue).work((plan.by as { handler: Handler<unknown> }).handler, { concurrency, graceMs, types })
  })
  const fail = (error: PieceworkError) => {
    failed ??= error
    over.abort()
  }
  for (const worker of workers) {
    // Stopped before it was ready, because it was told to or there was nothing left to do: that is no failure.
    worker.ready.catch((error) => (error as PieceworkError).code === 'PW_STOPPING' || fail(error))
    worker.on('error', (error) => {
      if (error instanceof PieceworkError && !error.retryable && 'exit' in errorTable[error.code]) return fail(error)
      output.say(warningText(error, output.json))
    })
  }
  const sum = { done: 0, retries: 0, dead: 0 }
  for (const worker of workers) {
    worker.on('done', () => void sum.done++)
    worker.on('retry', () => void sum.retries++)
    worker.on('dead', () => void sum.dead++)
  }
  const stopped = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve(), { once: true }))
  const run = async (): Promise<number> => {
    let dead = 0
    const drain = async (queue: string) => {
      dead += (await client.queue(queue).drained({ signal: over.signal })).dead
    }
    const goal: Promise<unknown> = plan.untilDrained ? Promise.all(plan.queues.map(drain)) : stopped
    // A wait that was given up is no error.
    await Promise.race([goal.catch((error) => over.signal.aborted || fail(error)), stopped])
    await Promise.all(workers.map((worker) => worker.stop({ graceMs: signals > 1 ? 0 : graceMs })))
    await caller?.close()
    output.say(reportOf(sum, plan))
    if (failed === null) return dead > 0 ? 1 : 0
    output.say(errorText(failed, output.json))
    return exitOf(failed)
  }
  return {
    ready: () => workers.every((worker) => worker.health().ready),
    ended: run(),
    stop(signal) {
      signals++
      if (signal !== undefined) caller?.struck(signal)
      over.abort()
      if (signals > 1) for (const worker of workers) worker.stop({ graceMs: 0 }).catch(fail)
      else clock.after(graceMs, () => caller?.stopAll())
    },
  }
}

/** What this process did, and what to look at next. */
function reportOf({ done, retries, dead }: { done: number; retries: number; dead: number }, plan: WorkPlan): string {
  const line = `piecework: ${grouped(done)} done, ${counted(retries, 'retry', 'retries')}, ${grouped(dead)} dead`
  if (dead === 0) return line
  const lists = plan.queues.map((name) => `  ${quoted(['piecework', 'dead', 'list', name, ...plan.url])}`)
  return [line, 'next:', ...lists].join('\n')
}

function callerFor(
  store: Store,
  manner: Manner,
  { concurrency, queues }: WorkPlan,
  output: Output,
  hopeless: (error: PieceworkError) => void,
): Caller {
  const silent = new Progress(store.clock, stderrScreen, () => Promise.reject(new Error('never asked')))
  const options = { tag: false, folder: null, log: null, quiet: false }
  const gate = new Gate(store.clock, concurrency * queues.length, null)
  return new Caller(
    new Launch(store.clock, concurrency * queues.length),
    manner,
    gate,
    new Results(options, output, silent, new Order(store.clock, null)),
    { hopeless, ended() {} },
  )
}
