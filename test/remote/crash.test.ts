// A broker is killed again and again under load: what it accepted is done, once, and its clients go on by themselves.
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { room, type Started, until } from '../cli/cli.js'

const kills = 5
const tasks = 3000

it('loses no accepted task and no ack, and makes none twice, in five kills', async () => {
  const at = room()
  const serve = async (port: string): Promise<Started> => {
    const started = at.start(['serve', '--port', port])
    await until('the broker', () => started.stdout.includes('\n') || started.child.exitCode !== null)
    return started
  }
  let broker = await serve('0')
  const url = broker.stdout.replace('listening on ', '').trim()
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const pile = pw.queue<number>('pile', { leaseMs: 5000 })
  const ran = new Map<number, number>()
  let next = () => {}
  const worker = pile.work(
    (n) => {
      ran.set(n, (ran.get(n) ?? 0) + 1)
      next()
    },
    { concurrency: 20 },
  )
  worker.on('error', () => {})
  await worker.ready
  const accepted: string[] = []
  const produce = async (from: number) => {
    for (let n = from; n < tasks; n += 10) accepted.push((await pile.enqueue(n)).id)
  }
  const producing = Promise.all(Array.from({ length: 10 }, (_, n) => produce(n)))
  for (let kill = 1; kill <= kills; kill++) {
    const enough = (tasks / (kills + 1)) * kill
    await new Promise<void>((resolve) => {
      next = () => void (ran.size >= enough && resolve())
      next()
    })
    broker.child.kill('SIGKILL')
    await broker.finished
    broker = await serve(new URL(url).port)
  }
  await producing
  expect(await pile.drained()).toEqual({ dead: 0 })
  expect(new Set(accepted).size).toBe(tasks)
  expect(ran.size).toBe(tasks)
  expect(await pile.stats()).toMatchObject({ enqueued: tasks, done: tasks, failures: 0 })
  await worker.stop()
  broker.child.kill('SIGTERM')
  expect((await broker.finished).code).toBe(0)
  const engine = engineFor(`sqlite:${at.path('piecework.db')}`)
  await engine.open()
  for (const { shown, counted } of (await engine.select('proof', {}, null)).items) expect(shown).toEqual(counted)
  await engine.close()
}, 120_000)
