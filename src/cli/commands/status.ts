// `piecework status`: how the queues and workers of a store stand.
import type { Command } from 'commander'
import { type Status, statusOf } from '../figures.js'
import { queueNamed } from '../names.js'
import { humanMs, table } from '../print.js'
import { acts } from '../program.js'
import { withStore } from '../store.js'

export function statusCommand(program: Command): void {
  const command = program
    .command('status')
    .description('show how the queues and workers stand')
    .argument('[queue]', 'only this queue')
  acts(command, async ({ url, output }, [word]) =>
    withStore(url, { create: false }, async (store) => {
      const queue = word === undefined ? null : (await queueNamed(store, word)).name
      const { status } = await statusOf(store, queue, null)
      await (output.json ? output.value(status) : output.result(pageOf(status)))
      return 0
    }),
  )
}

/** The figures for people. */
export function pageOf({ queues, workers }: Status): string {
  if (queues.length === 0) return 'No queue yet: nothing was ever enqueued here.'
  const rows = queues.map((queue) => [
    queue.paused ? `${queue.queue} (paused)` : queue.queue,
    queue.ready,
    queue.scheduled,
    queue.waiting,
    queue.leased,
    queue.dead,
    queue.backlogAgeMs === null ? null : humanMs(queue.backlogAgeMs),
    queue.donePerSecond === null ? null : queue.donePerSecond.toFixed(1),
    queue.etaMs === null ? null : humanMs(queue.etaMs),
    queue.workers,
  ])
  const head = ['queue', 'ready', 'scheduled', 'waiting', 'leased', 'dead', 'backlog age', 'done/s', 'eta', 'workers']
  const parts = [table(head, rows)]
  if (workers.length > 0) {
    const staff = workers.map(({ worker, host, pid, queues: names, busy, concurrency }) => [
      worker,
      `${host}:${pid}`,
      (names as string[]).join(' '),
      `${busy}/${concurrency}`,
    ])
    parts.push(table(['worker', 'where', 'queues', 'busy'], staff))
  }
  return parts.join('\n\n')
}
