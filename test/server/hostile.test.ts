// A broker under attack: it answers or hangs up, never fails, takes no task that nobody sent, and serves the others.
import { expect, it } from 'vitest'
import { room, until } from '../cli/cli.js'
import { ask } from './ask.js'
import { attacks, heard, strike } from './hostile.js'

it('meets 1200 hostile requests with refusals, and nothing else changes', async () => {
  const at = room()
  const served = at.start(['serve', '--port', '0'])
  await until('the first line', () => served.stdout.includes('\n') || served.child.exitCode !== null)
  const [, url = '', port = ''] = /^listening on (\S+:(\d+))\n/.exec(served.stdout) ?? []
  const { json } = await ask(url, 'POST', '/v1/queues/mine/tasks', { body: { payload: 'mine' } })

  const counts = new Map<number, number>()
  const queue = [...attacks(1200, 11)]
  const lane = async () => {
    for (let attack = queue.pop(); attack; attack = queue.pop()) {
      for (const { status, head } of heard(await strike(Number(port), attack))) {
        counts.set(status, (counts.get(status) ?? 0) + 1)
        const seen = `${attack.name}: ${status} for ${attack.bytes[0]?.subarray(0, 200).toString('latin1')}`
        if (status === 503) expect(head, seen).toContain('retry-after:')
        else expect(status, seen).toBeLessThan(500)
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  console.log(
    `answers: ${[...counts]
      .sort()
      .map(([status, n]) => `${n} x ${status}`)
      .join(', ')}`,
  )
  expect(counts.get(400) ?? 0).toBeGreaterThan(200)
  // Those that are honest after all are served.
  expect(counts.get(201) ?? 0).toBeGreaterThan(50)

  expect(served.child.exitCode).toBe(null)
  expect((await ask(url, 'GET', `/v1/queues/mine/tasks/${json.id}`)).json).toMatchObject({
    state: 'ready',
    payload: 'mine',
  })
  const names = (await ask(url, 'GET', '/v1/queues')).json.items.map((one: { queue: string }) => one.queue)
  expect(names).not.toContain('smuggled')
  served.child.kill('SIGTERM')
  expect((await served.finished).code).toBe(0)
  expect((await at.run(['audit', '--json'])).code).toBe(0)
  expect(JSON.stringify(Object.getPrototypeOf({}))).toBe('{}')
}, 120_000)
