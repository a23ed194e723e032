// Asks a broker over real sockets, and holds every answer against the schema that the route table promises for it.
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import * as v from 'valibot'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { systemClock } from '../../dist/ground/clock.js'
import { problemSchema } from '../../dist/server/route.js'
import { routerOf } from '../../dist/server/router.js'
import { routes } from '../../dist/server/routes.js'
import { type ManualClock, manualClock } from '../../dist/testing/manual-clock.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { startBroker, type TestBroker } from '../remote/broker.js'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read all shapes there are
  json: any
}

export interface Asking {
  body?: unknown
  /** The body as it stands, instead of JSON of `body`. */
  raw?: string | Buffer
  headers?: Record<string, string>
  agent?: Agent
  signal?: AbortSignal
}

export interface Room extends TestBroker {
  clock: ManualClock
  engine: Engine
  ask(method: string, path: string, asking?: Asking): Promise<Answer>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
}

/** A broker on a clock that stands still, over a store in memory; it goes with the test. */
export async function room(options: { tokens?: boolean; url?: string } = {}): Promise<Room> {
  const clock = manualClock()
  const engine = engineFor(options.url ?? 'sqlite::memory:', { clock, random: seededRandom(3) })
  await engine.open()
  const started = await startBroker(engine, { clock, tokens: options.tokens === true })
  onTestFinished(() => started.stop())
  const asked = (method: string, path: string, asking: Asking = {}) => ask(started.url, method, path, asking)
  return {
    ...started,
    clock,
    engine,
    ask: asked,
    post: (path, body, headers = {}) => asked('POST', path, { body, headers }),
    get: (path, headers = {}) => asked('GET', path, { headers }),
  }
}

const find = routerOf(routes)

/** Sends one request; throws when the answer is not of the shape that its route promises. */
export async function ask(url: string, method: string, path: string, asking: Asking = {}): Promise<Answer> {
  const { body, agent = new Agent(), signal } = asking
  const raw = asking.raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const kind = raw === undefined ? {} : { 'content-type': 'application/json' }
  const answer = await new Promise<Answer>((resolve, reject) => {
    const options = { method, agent, headers: { ...kind, ...asking.headers }, ...(signal ? { signal } : {}) }
    const sent = request(new URL(path, url), options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString()
        const json = /json/.test(response.headers['content-type'] ?? '') ? JSON.parse(text || 'null') : undefined
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json })
      })
    })
    sent.once('error', reject)
    sent.end(raw)
  })
  if (method !== 'HEAD') promised(method, path, answer)
  return answer
}

function promised(method: string, path: string, { status, headers, json }: Answer): void {
  if (headers['content-type'] === 'application/problem+json') return void v.parse(problemSchema, json)
  const { route } = find(method, path.split('?', 1)[0] ?? '')
  const schema = route.answers[status]
  if (schema === undefined) throw new Error(`${method} ${path} promises no answer with status ${status}.`)
  if (typeof schema !== 'string') v.parse(schema, json)
}

/** Resolves once the condition holds, looked at in every turn of the loop. */
export async function reached(what: string, condition: () => boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + 20_000
  while (!condition()) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`Waited in vain: ${what}`)
    await new Promise<void>((resolve) => systemClock.soon(resolve))
  }
}

/** The code and status of a refusal. */
export const refusal = ({ status, json }: Answer): [number, string] => [status, json?.code]
