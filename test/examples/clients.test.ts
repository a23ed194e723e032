// The clients without our library do what they say, against a real broker that asks for a token.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { newToken } from '../../dist/server/auth.js'
import { newUrl } from '../client/store.js'
import { startBroker } from '../remote/broker.js'

const run = promisify(execFile)
const file = (name: string) => fileURLToPath(new URL(`../../examples/clients/${name}`, import.meta.url))

const clients: [string, string][] = [
  ['client.sh', 'sh'],
  ['client.py', 'python3'],
]

it.each(clients)('%s produces, claims, extends and settles in fewer than 80 lines', async (name, program) => {
  expect(readFileSync(file(name), 'utf8').split('\n').length).toBeLessThan(80)
  const engine = engineFor(newUrl())
  await engine.open()
  const { url, stop } = await startBroker(engine, { tokens: true })
  onTestFinished(stop)
  const { id, text, hash } = newToken()
  const patch = { name: 'example', hash, scopes: ['produce', 'work'], queues: ['thumb*'], expiresAt: null }
  await engine.configure('token', id, patch, 'tester')
  const env = { ...process.env, PIECEWORK_TOKEN: text }
  const payloads = ['{"picture": "a.jpg"}', '[1, "two"]', '"x"']
  const { stdout } = await run(program, [file(name), url, 'thumbnails', ...payloads], { env })
  expect(stdout.split('\n')).toEqual([...payloads.flatMap((payload) => [`worked on ${payload}`, 'settled: done']), ''])
  const [figures] = (await engine.measure(['thumbnails'], true)).types
  expect(figures).toMatchObject({ done: 3, ready: 0, leased: 0, deliveries: 3, stale: 0 })
  await expect(run(program, [file(name), url, 'secret', '1'], { env })).rejects.toThrow(/PW_FORBIDDEN/)
})
