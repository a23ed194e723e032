// Opens stores for the tests of the client: in a folder of their own or in memory, on a clock that can be advanced.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Piecework } from 'piecework'
import { onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { type Clock, systemClock, systemRandom } from '../../dist/ground/clock.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import { Client } from '../../dist/queue/client.js'
import { Connection } from '../../dist/queue/connection.js'
import { startWorker } from '../../dist/worker/worker.js'

/** The machine's clock, ahead by what `advance` was given; timers run as they do. */
export interface AheadClock extends Clock {
  advance(ms: number): void
}

function aheadClock(): AheadClock {
  let aheadMs = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    wallMs: () => systemClock.wallMs() + aheadMs,
    uptimeMs: () => systemClock.uptimeMs() + aheadMs,
    advance: (ms) => {
      aheadMs += ms
    },
  }
}

/** The URL of a store that does not exist yet, in a folder that goes when the test ends. */
export function newUrl(): string {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-client-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'work.db')}`
}

export interface Opened {
  pw: Piecework
  connection: Connection
  clock: AheadClock
}

/** Opens a store (default: a new file) and closes it when the test ends. */
export async function openStore(
  options: { url?: string; policy?: 'strict'; clock?: AheadClock } = {},
): Promise<Opened> {
  const clock = options.clock ?? aheadClock()
  const ports = { clock, random: systemRandom }
  const engine = engineFor(options.url ?? newUrl(), ports)
  await engine.open()
  const connection = new Connection({ ...ports, engine, startWorker, heartbeat: 'loop', policy: options.policy })
  onTestFinished(() => connection.close())
  return { pw: new Client(connection), connection, clock }
}

/** The refusal a promise ends with; fails the test when it ends well. */
export async function refusalOf(promise: Promise<unknown>): Promise<PieceworkError> {
  const error = await promise.then(
    (value) => new Error(`not refused: ${JSON.stringify(value)}`),
    (reason) => reason,
  )
  if (error instanceof PieceworkError) return error
  throw error
}

/** What a function of the process's warnings hears while `act` runs. */
export async function warningsOf(act: () => Promise<unknown>): Promise<(Error & { code?: string })[]> {
  const heard: Error[] = []
  const listen = (warning: Error) => heard.push(warning)
  process.on('warning', listen)
  try {
    await act()
    // Warnings are told on the next tick.
    await new Promise((resolve) => process.nextTick(resolve))
  } finally {
    process.off('warning', listen)
  }
  return heard
}

/** Claims up to `max` tasks of a queue and buries them with one error, without a worker; answers their ids. */
export async function buryAll(connection: Connection, queue: string, max: number, text: string): Promise<string[]> {
  const { engine } = connection.ports
  const ask = { worker: 'by hand', requestId: null, wants: [{ queue, types: null, max }] }
  const { deliveries } = await engine.claim(ask)
  const error = { code: null, text }
  const verdicts = deliveries.map(({ receipt }) => ({ receipt, do: 'bury' as const, error }))
  await engine.settle({ worker: 'by hand', flush: null }, verdicts)
  return deliveries.map(({ id }) => id)
}

/** Claims up to `max` tasks of a queue and keeps them; answers their receipts. */
export async function holdSome(connection: Connection, queue: string, max: number): Promise<string[]> {
  const ask = { worker: 'by hand', requestId: null, wants: [{ queue, types: null, max }] }
  return (await connection.ports.engine.claim(ask)).deliveries.map(({ receipt }) => receipt)
}

/** Acks what is held by hand. */
export async function ackAll(connection: Connection, receipts: readonly string[]): Promise<void> {
  const verdicts = receipts.map((receipt) => ({ receipt, do: 'ack' as const }))
  await connection.ports.engine.settle({ worker: 'by hand', flush: null }, verdicts)
}

/** Resolves `reached` at the n-th `hit`. */
export function latch(n = 1): { hit: () => void; reached: Promise<void> } {
  let left = n
  let open = () => {}
  const reached = new Promise<void>((resolve) => {
    open = resolve
  })
  const hit = () => {
    if (--left === 0) open()
  }
  return { hit, reached }
}
