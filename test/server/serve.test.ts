// `piecework serve` and `piecework token` as real processes: where it listens, what it refuses to open, how it ends.
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type Room, room, type Started, until } from '../cli/cli.js'
import { ask, refusal } from './ask.js'

async function serve(at: Room, ...words: string[]): Promise<Started & { url: string }> {
  const started = at.start(['serve', '--port', '0', ...words])
  await until('the first line', () => started.stdout.includes('\n') || started.child.exitCode !== null)
  const [, url = ''] = /^listening on (\S+)\n/.exec(started.stdout) ?? []
  return Object.assign(started, { url })
}

const events = (stderr: string) =>
  stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).event)

it('says where it listens, serves a store it makes, and ends well on SIGTERM while a client waits', async () => {
  const at = room()
  const served = await serve(at)
  expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  const made = await ask(served.url, 'POST', '/v1/queues/q/tasks', { body: { payload: 1 } })
  expect(made.status).toBe(201)
  const body = { worker: 'w', waitMs: 20_000, types: ['none'] }
  const poll = ask(served.url, 'POST', '/v1/queues/q/claims', { body })
  await until('the poll', async () => /http_waiting 1/.test((await ask(served.url, 'GET', '/metrics')).text))
  served.child.kill('SIGTERM')
  expect((await poll).json).toEqual({ deliveries: [] })
  const { code, stderr } = await served.finished
  expect([code, events(stderr)]).toEqual([0, ['listening', 'stopping', 'stopped']])
  const { stdout } = await at.run(['task', 'list', 'q', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ id: made.json.id, state: 'ready' })
})

it('refuses to be open to strangers: no TLS, or no token, ends with 2 at once', async () => {
  const at = room()
  const run = (...words: string[]) => at.run(['serve', '--port', '0', '--json', ...words])
  for (const words of [
    ['--host', '0.0.0.0'],
    ['--host', '0.0.0.0', '--behind-proxy'],
    ['--host', '::', '--behind-proxy'],
  ]) {
    const { code, stdout, stderr } = await run(...words)
    expect([code, stdout, JSON.parse(stderr).error.code], words.join(' ')).toEqual([2, '', 'PW_SERVE_EXPOSED'])
  }
  for (const words of [
    ['--tls-cert', 'missing.pem'],
    ['--port', '70000'],
    ['--tls-cert', 'a', '--tls-key', 'b'],
  ]) {
    expect((await run(...words)).code, words.join(' ')).toBe(2)
  }
})

it('makes tokens that are shown once, lists them without secrets, and revokes them within a second', async () => {
  const at = room()
  const create = (...words: string[]) => at.run(['token', 'create', ...words, '--json'])
  const [made] = (await create('app', '--scope', 'produce', '--queue', 'mail*')).json()
  expect(made).toMatchObject({ name: 'app', scopes: ['produce'], queues: ['mail*'], expiresAt: null })
  expect(made?.token).toMatch(/^pw_[0-9a-f]{12}_[\w-]{43}$/)
  const [second] = (await create('app', '--expires', '1h')).json()
  const third = await create('app')
  expect([third.code, JSON.parse(third.stderr).error.code]).toEqual([2, 'PW_TOKEN_THIRD'])
  const listed = await at.run(['token', 'list', '--json'])
  expect(
    listed
      .json()
      .map(({ id }) => id)
      .sort(),
  ).toEqual([made?.id, second?.id].sort())
  for (const { token } of [made, second] as { token: string }[]) {
    expect(listed.stdout).not.toContain(token.slice('pw_0123456789ab_'.length))
  }
  const served = await serve(at, '--tokens')
  const enqueue = (token?: string) =>
    ask(served.url, 'POST', '/v1/queues/mail/tasks', {
      body: { payload: 1 },
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    })
  expect(refusal(await enqueue())).toEqual([401, 'PW_TOKEN_INVALID'])
  expect((await enqueue(made?.token)).status).toBe(201)
  expect((await at.run(['token', 'revoke', made?.id])).code).toBe(0)
  await until('the revocation', async () => (await enqueue(made?.token)).status === 401, 2500)
  expect((await at.run(['token', 'revoke', made?.id])).code).toBe(2)
  const { stderr } = await at.run(['serve', '--host', '0.0.0.0', '--port', '0', '--json'])
  expect(JSON.parse(stderr).error.code).toBe('PW_SERVE_EXPOSED')
  served.child.kill('SIGTERM')
  const ended = await served.finished
  for (const { token } of [made, second] as { token: string }[]) expect(ended.stderr).not.toContain(token)
})

it('speaks TLS with the certificate it is given, and only that', async () => {
  const at = room()
  const file = (name: string) => fileURLToPath(new URL(`./tls/${name}`, import.meta.url))
  // Made for this test alone; whoever has its key has nothing.
  const ca = readFileSync(file('cert.pem'))
  const served = await serve(at, '--tls-cert', file('cert.pem'), '--tls-key', file('key.pem'))
  expect(served.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  const asked = (options: object) =>
    new Promise<{ status: number | undefined; version: string | null }>((resolve, reject) => {
      const sent = request(`${served.url}/healthz`, { agent: false, ...options }, (response) => {
        const { statusCode: status, socket } = response.resume()
        resolve({ status, version: (socket as TLSSocket).getProtocol() })
      })
      sent.once('error', reject).end()
    })
  expect(await asked({ ca })).toEqual({ status: 200, version: 'TLSv1.3' })
  await expect(asked({})).rejects.toThrow(/self-signed/)
  await expect(asked({ ca, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow()
  await expect(ask(served.url.replace('https', 'http'), 'GET', '/healthz')).rejects.toThrow()
  served.child.kill('SIGTERM')
  expect((await served.finished).code).toBe(0)
  const swapped = await at.run(['serve', '--port', '0', '--tls-cert', file('key.pem'), '--tls-key', file('cert.pem')])
  expect([swapped.code, swapped.stderr]).toEqual([2, expect.stringContaining('PW_OPTION_INVALID')])
})
