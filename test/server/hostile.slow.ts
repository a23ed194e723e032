// Ten thousand hostile requests beside 500 clients that never finish theirs: what others feel, and what it leaves.
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { systemClock } from '../../dist/ground/clock.js'
import { room, until } from '../cli/cli.js'
import { ask } from './ask.js'
import { attacks, heard, strike } from './hostile.js'

const attackCount = 10_000
const slowClients = 500
const probes = 1000

it('answers the others as before, fails nowhere, and has its memory back 10 s later', async () => {
  const at = room()
  const served = at.start(['serve', '--port', '0'])
  await until('the first line', () => served.stdout.includes('\n') || served.child.exitCode !== null)
  const [, url = '', port = ''] = /^listening on (\S+:(\d+))\n/.exec(served.stdout) ?? []
  const { json } = await ask(url, 'POST', '/v1/queues/mine/tasks', { body: { payload: 'mine' } })
  const rssMiB = () =>
    Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${served.child.pid}/status`, 'utf8'))?.[1]) / 1024)

  /** What one honest client waits for each of its answers, ms; those of `while` end it. */
  const probe = async (goOn: (n: number) => boolean) => {
    const times: number[] = []
    while (goOn(times.length)) {
      const sentAt = systemClock.monotonicMs()
      expect((await ask(url, 'GET', `/v1/queues/mine/tasks/${json.id}`)).status).toBe(200)
      times.push(systemClock.monotonicMs() - sentAt)
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN
  }
  // Once, so that what is compared has all its code compiled and its heap grown.
  await attacked(Number(port), 1000, 1)
  const before = rssMiB()
  const quietMs = await probe((n) => n < probes)

  const sockets = Array.from({ length: slowClients }, () => slowClient(Number(port)))
  let over = false
  const under = probe(() => !over)
  const { failed, refusedBusy } = await attacked(Number(port), attackCount, 2)
  over = true
  const attackedMs = await under
  for (const socket of sockets) socket.destroy()
  await new Promise<void>((resolve) => systemClock.after(10_000, resolve, true))
  const after = rssMiB()

  const p99 = `p99 of others ${quietMs.toFixed(1)} ms before, ${attackedMs.toFixed(1)} ms meanwhile`
  console.log(`${attackCount} attacks: ${failed} failed, ${refusedBusy} x 503; ${p99}; RSS ${before} -> ${after} MiB`)
  expect(failed).toBe(0)
  expect(attackedMs).toBeLessThanOrEqual(5 * quietMs)
  expect(after).toBeLessThanOrEqual(1.2 * before)
  expect((await ask(url, 'GET', `/v1/queues/mine/tasks/${json.id}`)).json).toMatchObject({ state: 'ready' })
  served.child.kill('SIGTERM')
  expect((await served.finished).code).toBe(0)
}, 600_000)

/** How many of so many attacks met a failure, or a broker that has no room. */
async function attacked(port: number, count: number, seed: number) {
  const queue = [...attacks(count, seed)]
  let failed = 0
  let refusedBusy = 0
  const lane = async () => {
    for (let attack = queue.pop(); attack; attack = queue.pop()) {
      for (const { status, head } of heard(await strike(port, attack))) {
        if (status === 503 && head.includes('retry-after:')) refusedBusy++
        else if (status >= 500) failed++
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  return { failed, refusedBusy }
}

/** Sends a byte of its body each second, and would go on for an hour and a half. */
function slowClient(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write('POST /v1/queues/slow/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5000\r\n\r\n')
  const drip = () => {
    if (socket.destroyed) return
    socket.write(' ')
    systemClock.after(1000, drip)
  }
  drip()
  return socket
}
