// What connect() and a worker accept and answer, checked by the compiler alone.
import { connect, type ErrorCode, PieceworkError, type Worker } from 'piecework'

export async function connections(): Promise<void> {
  await using pw = await connect()
  await connect('sqlite:work.db', { policy: 'strict', durability: 'full' })
  await connect({ url: 'sqlite::memory:', durability: undefined })
  // @ts-expect-error there is one word for it
  await connect('sqlite:work.db', { policy: 'warn' })
  // @ts-expect-error an unknown option
  await connect({ file: 'work.db' })
  await pw.ready
}

export async function workers(worker: Worker): Promise<void> {
  worker.on('done', (event) => event.runMs.toFixed()).on('error', (error) => error.message)
  // @ts-expect-error no such event
  worker.on('finished', () => undefined)
  await worker.stop({ graceMs: 10 })
}

export function errors(error: unknown): ErrorCode | undefined {
  if (!(error instanceof PieceworkError)) return undefined
  // @ts-expect-error codes are a closed list
  if (error.code === 'PW_NO_SUCH_CODE') return undefined
  return error.code
}
