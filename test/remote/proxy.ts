// A way to a broker that loses, holds up, doubles and forgets what it carries, by a seed.
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { systemClock } from '../../dist/ground/clock.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { type HastyClock, hastyClock } from './broker.js'

/** What can become of one request and its answer. */
export const faults = [
  'lose the request',
  'lose the answer',
  'cut the answer',
  'double the request',
  'double it later',
  'hold up the answer',
  'never answer',
  'never forward',
] as const
export type Fault = (typeof faults)[number]

export interface Way {
  readonly url: string
  /** For the engines that use it: what is never answered is given up on it. */
  readonly clock: HastyClock
  close(): Promise<void>
}

export interface WayOptions {
  seed: number
  /** The share of requests that something becomes of. */
  share: number
  /** May answers be kept back for ever now? The clock gives up all that are awaited: of sixty none would ever come. */
  calm: () => boolean
  /** Told of each fault. */
  done?: (fault: Fault) => void
}

interface Carried {
  status: number
  headers: IncomingMessage['headers']
  body: Buffer
}

/** Verbs that are repeated by looking again, whose doubles a test could not tell from themselves. */
const plain = ['/v1/engine/wait', '/v1/engine/open']

export async function wayTo(target: string, options: WayOptions): Promise<Way> {
  const random = seededRandom(options.seed)
  const clock = hastyClock()
  const later: (() => Promise<unknown>)[] = []
  const choose = (path: string): Fault | null => {
    if (random() >= options.share) return null
    if (plain.includes(path)) return 'lose the request'
    const fault = faults[Math.floor(random() * faults.length)] as Fault
    return fault.startsWith('never') && !options.calm() ? 'lose the answer' : fault
  }
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await whole(request)
    const fault = choose(request.url ?? '')
    if (fault !== null) options.done?.(fault)
    const forward = () => carry(target, request, body, response)
    if (later.length > 0 && random() < 0.5) await later.shift()?.()
    if (fault === 'lose the request') return response.destroy()
    if (fault === 'never forward') return systemClock.soon(() => clock.expire())
    if (fault === 'double the request') await forward()
    const answer = await forward()
    if (fault === 'double it later') later.push(forward)
    if (fault === 'lose the answer') return response.destroy()
    if (fault === 'never answer') return clock.expire()
    if (fault === 'hold up the answer') await Promise.race([turns(20), new Promise((go) => response.once('close', go))])
    response.writeHead(answer.status, answer.headers)
    if (fault !== 'cut the answer') return response.end(answer.body)
    response.write(answer.body.subarray(0, answer.body.length >> 1), () => response.destroy())
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    clock,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function whole(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Sends the request to the broker and answers what came back; gives it up when the client goes. */
function carry(target: string, { method, url, headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
  return new Promise<Carried>((resolve, reject) => {
    const sent = send(new URL(url ?? '', target), { method, headers: { ...headers, connection: 'close' } })
    const gone = () => void (url === '/v1/engine/wait' && sent.destroy())
    response.once('close', gone)
    sent.once('error', reject)
    sent.once('response', (answer) => {
      const { 'transfer-encoding': _, connection: _c, 'keep-alive': _k, ...kept } = answer.headers
      whole(answer).then((text) => resolve({ status: answer.statusCode ?? 0, headers: kept, body: text }), reject)
    })
    sent.end(body)
  })
}

/** A while, as other work of this process measures it. */
async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise<void>((resolve) => systemClock.soon(resolve))
}
