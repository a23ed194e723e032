// A small process that starts COMMANDs for a run: starting one blocks its process, and the larger that is, the longer.
import { systemClock } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { type Running, start } from './child.js'
import type { Answer, Order } from './launch.js'

/** The next run may have the same tasks within a second. */
const goneKillMs = 1000

const running = new Map<number, Running>()

/** When the run is gone nobody is told; without the callback that would end this process before what it started. */
const tell = (answer: Answer) => process.send?.(answer, undefined, undefined, () => {})

async function take(order: Order): Promise<void> {
  const { id } = order
  if (order.do === 'stop') return running.get(id)?.stop(order.killMs)
  try {
    const child = await start(systemClock, order.call)
    running.set(id, child)
    tell({ id, is: 'started', pid: child.pid })
    const { stdout, ...ended } = await child.ended
    running.delete(id)
    tell({ id, is: 'ended', ended, stdout: stdout.pack() })
  } catch (error) {
    const { code, message } =
      error instanceof PieceworkError ? error : { code: 'PW_BUG' as const, message: String(error) }
    tell({ id, is: 'refused', code, message })
  }
}

process.on('message', (order) => void take(order as Order))
/** The run is gone: what it had started would work for nobody, or a second time beside the next run. */
process.on('disconnect', () => {
  for (const child of running.values()) child.stop(goneKillMs)
  void Promise.allSettled([...running.values()].map((child) => child.ended)).finally(() => process.exit())
})
tell({ id: 0, is: 'ready' })
