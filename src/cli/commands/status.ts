// `piecework status`: how the queues and workers of a store stand.
import type { Command } from 'commander'
import type { Traits } from '../../engine/contract.js'
import { pause } from '../../ground/clock.js'
import { type Counted, type Status, statusOf } from '../../insight/status.js'
import { queueNamed } from '../names.js'
import { humanMs, table } from '../print.js'
import { acts } from '../program.js'
import { withStore } from '../store.js'

const watchEveryMs = 1000
/** Behind a pooler that shares sessions among many, and in memory. */
const leasesAlone = 'A dead worker is known here by the end of its leases alone: its tasks come back after leaseMs.'

export function statusCommand(program: Command): void {
  const command = program
    .command('status')
    .description('show how the queues and workers stand')
    .argument('[queue]', 'only this queue')
    .option('--watch', 'again every second, until Ctrl-C')
  acts(command, async ({ url, output }, [word], { watch }) =>
    withStore(url, { create: false }, async (store) => {
      const queue = word === undefined ? null : (await queueNamed(store, word)).name
      const ending = new AbortController()
      if (watch === true) process.once('SIGINT', () => ending.abort())
      for (let before: Counted | null = null; !ending.signal.aborted; ) {
        const { status, counted } = await statusOf(store, queue, before)
        const clear = watch === true && process.stdout.isTTY ? '\u001b[H\u001b[2J' : ''
        await (output.json
          ? output.value(status)
          : output.result(clear + pageOf(status, counted, store.engine.traits.liveness)))
        if (watch !== true) break
        before = counted
        await pause(store.clock, watchEveryMs, ending.signal)
      }
      return 0
    }),
  )
}

/** A worker says at least every 5 s that it lives; one that has been silent for so long is dead, stopped or cut off. */
const silentMs = 15_000

const heardOf = (ms: number) => `${humanMs(Math.max(0, ms))} ago${ms > silentMs ? ' (silent: dead or stopped)' : ''}`

/** The figures for people. */
function pageOf({ at, queues, workers }: Status, { totals }: Counted, liveness: Traits['liveness']): string {
  if (queues.length === 0) return 'No queue yet: nothing was ever enqueued here.'
  const rows = queues.map((queue) => [
    queue.paused ? `${queue.queue} (paused)` : queue.queue,
    queue.ready,
    queue.scheduled,
    queue.waiting,
    queue.leased,
    totals.get(queue.queue)?.done,
    queue.dead,
    queue.backlogAgeMs === null ? null : humanMs(queue.backlogAgeMs),
    queue.donePerSecond === null ? null : queue.donePerSecond.toFixed(1),
    queue.etaMs === null ? null : humanMs(queue.etaMs),
    queue.workers,
  ])
  const states = ['ready', 'scheduled', 'waiting', 'leased', 'done', 'dead']
  const head = ['queue', ...states, 'backlog age', 'done/s', 'eta', 'workers']
  const parts = [table(head, rows)]
  if (workers.length > 0) {
    const staff = workers.map(({ worker, host, pid, queues: names, busy, concurrency, aliveAt }) => [
      worker,
      `${host}:${pid}`,
      (names as string[]).join(' '),
      `${busy}/${concurrency}`,
      heardOf(Date.parse(at) - Date.parse(String(aliveAt))),
    ])
    parts.push(table(['worker', 'where', 'queues', 'busy', 'last heard of'], staff))
  }
  if (liveness === 'lease') parts.push(leasesAlone)
  return parts.join('\n\n')
}
