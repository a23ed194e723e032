// What happens to the file under running processes: removed, moved, replaced, copied, and a disk without room.

import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { start } from './processes.js'
import { sqlite, storeOf } from './stores.js'

const harms: { name: string; stays?: true; harm(file: string): void }[] = [
  { name: 'removed', harm: (file) => rmSync(file) },
  { name: 'robbed of its log', stays: true, harm: (file) => rmSync(`${file}-wal`) },
  { name: "robbed of its log's index", stays: true, harm: (file) => rmSync(`${file}-shm`) },
  { name: 'moved', harm: (file) => renameSync(file, `${file}-elsewhere`) },
  {
    name: 'replaced by a copy of itself',
    stays: true,
    harm: (file) => {
      copyFileSync(file, `${file}-copy`)
      renameSync(`${file}-copy`, file)
    },
  },
]

describe('a store whose file is gone', () => {
  it.each(harms)('is not used any more when the file was $name', async ({ stays = false, harm }) => {
    const store = await storeOf(sqlite)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close().catch(() => {}))
    const tasks = pw.queue('work')
    // Short leases: it is ready only when its heartbeat has opened the file, too.
    const policy = { leaseMs: 2000 }
    const worker = start('worker', { url: store.url, queue: 'work', policy, options: { concurrency: 2 } })
    await worker.heard('ready')
    await tasks.enqueue({ do: 'wait' })
    await worker.heard('started')

    harm(store.file)
    // The worker finds out by itself, with nothing to do, and so does a client.
    expect((await worker.heard('error'))[0]).toMatchObject({ code: 'PW_STORE_MOVED' })
    worker.tell({ say: 'health' })
    expect((await worker.heard('health'))[0]).toMatchObject({ live: false, ready: false })
    await expect(tasks.enqueue({ do: 'quick' })).rejects.toMatchObject({ code: 'PW_STORE_MOVED' })
    await expect(tasks.stats()).rejects.toMatchObject({ code: 'PW_STORE_MOVED' })
    // What still runs ends; its ack is not accepted, since nobody would find it.
    worker.tell({ say: 'open' })
    await worker.heard('effect')
    worker.kill('SIGTERM')
    expect(await worker.exit).toMatchObject({ code: 0 })
    expect(worker.lines.filter(({ what }) => what === 'done')).toEqual([])
    expect(worker.lines.filter(({ what }) => what === 'started')).toHaveLength(1)
    expect(existsSync(store.file)).toBe(stays)
  })
})

describe('the locks of those who live', () => {
  it.each([
    ['removed', (folder: string) => rmSync(folder, { recursive: true })],
    ['put out of reach', (folder: string) => renameSync(folder, `${folder}-elsewhere`)],
  ])('make nobody dead when they are %s', async (_, harm) => {
    const store = await storeOf(sqlite)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', { leaseMs: 30_000 })
    const worker = start('worker', { url: store.url, queue: 'work', policy: { leaseMs: 30_000 } })
    const { id } = await tasks.enqueue({ do: 'wait' })
    await worker.heard('started')
    harm(`${store.file}-alive`)
    for (let i = 0; i < 3; i++) expect(await store.engine.sweep(1000)).toMatchObject({ died: 0 })
    worker.tell({ say: 'open' })
    expect((await worker.heard('done'))[0]).toMatchObject({ id, number: 1 })
    worker.kill('SIGTERM')
    expect(await worker.exit).toMatchObject({ code: 0 })
    await store.engine.close()
  })

  it('can be tested by everybody who may use the store', async () => {
    const store = await storeOf(sqlite)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const worker = start('worker', { url: store.url, queue: 'work' })
    await worker.heard('ready')
    const locks = () => readdirSync(`${store.file}-alive`).map((name) => `${store.file}-alive/${name}`)
    const modes = (paths: string[]) => [...new Set(paths.map((path) => statSync(path).mode & 0o777))]
    expect(modes([`${store.file}-alive`, ...locks()])).toEqual([0o700, 0o600])
    worker.kill('SIGKILL')
    await worker.exit
    rmSync(`${store.file}-alive`, { recursive: true })
    chmodSync(store.file, 0o660)
    const other = start('worker', { url: store.url, queue: 'work' })
    await other.heard('ready')
    expect(modes([`${store.file}-alive`, ...locks()])).toEqual([0o770, 0o660])
  })
})

describe('a copy of a store', () => {
  it('knows no receipt of the original, and gives the tasks to its own workers', async () => {
    const store = await storeOf(sqlite)
    const { engine } = store
    const payload = JSON.stringify({ do: 'wait' })
    await engine.enqueue(null, [{ queue: 'work', payload }])
    const wants = [{ queue: 'work', types: null, max: 1 }]
    const { deliveries } = await engine.claim({ worker: 'by hand', requestId: null, leaseMs: 60_000, wants })
    const { receipt = '' } = deliveries[0] ?? {}
    await engine.enqueue(null, [{ queue: 'work', payload }])
    const holder = start('worker', { url: store.url, queue: 'work' })
    const [started] = await holder.heard('started')

    const copied = join(store.folder, 'copy.db')
    const source = new Database(store.file, { readonly: true })
    await source.backup(copied)
    source.close()
    const copy = engineFor(`sqlite:${copied}`)
    await copy.open()
    onTestFinished(() => copy.close())
    const ack = { receipt, do: 'ack' as const }
    expect(await copy.settle({ worker: 'by hand', flush: null }, [ack])).toEqual(['stale'])
    expect(await copy.extend('by hand', [{ receipt, leaseMs: 90_000 }])).toEqual(['stale'])
    // The copy's workers are those that started on it: whoever held its tasks elsewhere is none of them.
    const heir = start('worker', { url: `sqlite:${copied}`, queue: 'work' })
    expect((await heir.heard('started'))[0]).toMatchObject({ id: started?.id, number: 2 })

    // The original goes on as if nothing had been.
    expect(await engine.settle({ worker: 'by hand', flush: null }, [ack])).toEqual(['done'])
    holder.tell({ say: 'open' })
    expect((await holder.heard('done'))[0]).toMatchObject({ id: started?.id, number: 1 })
    expect(await store.tasks()).toEqual([])
  })
})

/** Commands that run a program with a small disk of its own; the first that this system allows, if it allows one. */
const small = 'mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@"'
const disks = [
  ['unshare', '--user', '--map-root-user', '--mount'],
  ['unshare', '--mount'],
]
  .map(([command = '', ...args]) => ({ command, args: [...args, 'sh', '-c', small] }))
  .filter(({ command, args }) => spawnSync(command, [...args, tmpdir(), 'true']).status === 0)
  .slice(0, 1)
if (disks.length === 0) console.log('This system lets nobody mount a small disk: a full one is not tried.')

describe('a disk without room', () => {
  it.each(disks.flatMap((disk) => [false, true].map((reopens) => ({ ...disk, reopens }))))(
    'takes no tasks, but acks until the queue is drained; then tasks again when there is room (reopened: $reopens)',
    async ({ reopens, ...disk }) => {
      const folder = mkdtempSync(join(tmpdir(), 'piecework-disk-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const program = start('full-disk', { folder, tasks: 2000, reopens }, [disk.command, ...disk.args, folder])
      expect(await program.heard('refused', 2)).toMatchObject([{ code: 'PW_DISK_FULL' }, { code: 'PW_DISK_FULL' }])
      const [end] = await program.heard('drained')
      const { more = Number.NaN } = end ?? {}
      expect(end).toMatchObject({ done: 2000 + more, acked: 2000 + more, enqueued: 2000 + more, dead: 0, ready: 0 })
      // A few may find a place in the last page before the first is refused.
      expect(more).toBeLessThan(50)
      program.tell({ say: 'make room' })
      await program.heard('accepted again')
      expect(await program.exit).toMatchObject({ code: 0 })
    },
  )

  it('takes no tasks, but acks, from processes that may not write the reserve', async () => {
    const store = await storeOf(sqlite)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work')
    await tasks.enqueueMany(Array.from({ length: 300 }, () => ({ do: 'quick' })))
    rmSync(`${store.file}-ballast`)
    // Blocks of 512 bytes: less than the reserve, more than the log of 300 tasks.
    const wrap = ['sh', '-c', 'ulimit -f 6000 && exec "$0" "$@"']
    const orders = { url: store.url, queue: 'work' }
    const producer = start('producer', { ...orders, rounds: [[{ payload: { do: 'quick' }, options: {} }]] }, wrap)
    expect(await producer.exit).toMatchObject({ code: 1 })
    expect(producer.stderr).toContain('PW_DISK_FULL')
    expect(producer.lines.filter(({ what }) => what === 'accepted')).toEqual([])
    const worker = start('worker', orders, wrap)
    await worker.heard('done', 300)
    expect(await tasks.drained()).toEqual({ dead: 0 })
    expect(await tasks.stats()).toMatchObject({ enqueued: 300, done: 300 })
  })
})
