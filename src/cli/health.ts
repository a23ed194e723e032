// Answers probes over HTTP: /healthz while the process lives, /readyz while it can take work.
import { createServer } from 'node:http'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'

/** Listens on `[HOST:]PORT` (host: 127.0.0.1); answers where, and how to stop. Throws PW_OPTION_INVALID. */
export async function serveHealth(where: string, ready: () => boolean): Promise<{ url: string; close(): void }> {
  const match = /^(?:(.+):)?(\d{1,5})$/.exec(where)
  const refused = (why: string) => new PieceworkError('PW_OPTION_INVALID', `--health is ${shown(where)}: ${why}.`)
  if (match === null) throw refused('it must be PORT or HOST:PORT')
  const host = (match[1] ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1')
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0]
    const known = path === '/healthz' || path === '/readyz'
    const well = path === '/healthz' || ready()
    response.writeHead(known ? (well ? 200 : 503) : 404, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(known ? { live: true, ready: ready() } : { error: 'Ask /healthz or /readyz.' })}\n`)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(refused(error.message)))
    server.listen(Number(match[2]), host, () => resolve())
  })
  const { port } = server.address() as { port: number }
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, close: () => server.close() }
}
