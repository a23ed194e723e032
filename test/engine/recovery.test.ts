// A process rebuilds the log's index, as after the death of a writer: whoever reads or opens meanwhile waits for it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeSync } from 'node:fs'
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { newUrl } from '../client/store.js'

/** Holds the bytes of the index by which SQLite knows its writer (120) and who rebuilds (122), until it is told. */
const rebuilder = `
import fcntl, sys
index = open(sys.argv[1], 'r+b')
for byte in (120, 122): fcntl.lockf(index, fcntl.LOCK_EX, 1, byte)
print('held', flush=True)
sys.stdin.read()
`

async function rebuilding(file: string): Promise<ChildProcess> {
  const child = spawn('python3', ['-c', rebuilder, `${file}-shm`], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  // What a writer leaves that dies between the two copies of the header: they differ.
  const index = openSync(`${file}-shm`, 'r+')
  writeSync(index, Buffer.alloc(48, 0xff), 0, 48, 0)
  closeSync(index)
  return child
}

it('lets every call wait for it instead of failing, and then answers what is true', async () => {
  const url = newUrl()
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const tasks = pw.queue('work')
  const { id } = await tasks.enqueue({ n: 1 })
  const child = await rebuilding(url.slice('sqlite:'.length))

  const ended: string[] = []
  const note = (name: string) => () => void ended.push(name)
  const calls = [
    tasks.get(id).finally(note('get')),
    tasks.stats().finally(note('stats')),
    tasks.enqueue({ n: 2 }).finally(note('enqueue')),
    connect(url)
      .then((second) => second.close())
      .finally(note('connect')),
  ]
  const all = Promise.allSettled(calls)
  // Each has looked at the index by now: an enqueue waits in its own turn, which comes after theirs.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  expect(ended).toEqual([])
  child.kill('SIGKILL')
  expect((await all).map(({ status }) => status)).toEqual(calls.map(() => 'fulfilled'))
  expect((await tasks.stats()).ready).toBe(2)
})
