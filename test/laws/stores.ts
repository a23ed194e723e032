// The engines that the laws run on, each with a way to a fresh store and to what that store has written down.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import type { HistoryRecord, ProofRecord, TaskRecord } from '../../dist/task/records.js'
import { canLock, type Entry, keepChronicle, readChronicle } from './chronicle.js'
import { type Process, passed, until } from './processes.js'

/** A store, and the eyes of the law in it: they read and never sweep. */
export interface Store {
  readonly url: string
  /** A folder for the logs of its processes. */
  readonly folder: string
  /** The store's file, where it is one. */
  readonly file: string
  /** A handle that no connection sweeps with. */
  readonly engine: Engine
  task(id: string): Promise<TaskRecord | undefined>
  tasks(): Promise<TaskRecord[]>
  history(id: string): Promise<HistoryRecord[]>
  proof(): Promise<ProofRecord[]>
  chronicle(tasks?: readonly string[]): Entry[]
  /** False while somebody, stopped for instance, is in the middle of a write. */
  writable(): boolean
  remove(): Promise<void>
}

/** One engine. */
export interface Subject {
  readonly name: string
  /** A fresh store, that keeps a chronicle. */
  fresh(): Promise<Store>
}

/** For what only a file on one machine can show. */
export const sqlite: Subject = {
  name: 'SQLite',
  async fresh() {
    const folder = mkdtempSync(join(tmpdir(), 'piecework-laws-'))
    const file = join(folder, 'work.db')
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    keepChronicle(file)
    const eyes = eyesOf(engine)
    return {
      ...eyes,
      url: `sqlite:${file}`,
      folder,
      file,
      engine,
      chronicle: (tasks) => readChronicle(file, tasks),
      writable: () => canLock(file),
      async remove() {
        await engine.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

/** Every engine the laws hold for. */
export const subjects: readonly Subject[] = [sqlite]

/** A fresh store that goes when the test ends. */
export async function storeOf(subject: Subject): Promise<Store> {
  const store = await subject.fresh()
  onTestFinished(() => store.remove())
  return store
}

function eyesOf(engine: Engine): Pick<Store, 'task' | 'tasks' | 'history' | 'proof'> {
  return {
    async task(id) {
      return (await engine.select('task', { ids: [id] }, null)).items[0] as TaskRecord | undefined
    },
    async tasks() {
      const found: TaskRecord[] = []
      for (let cursor: string | null = null; ; ) {
        const page = await engine.select('task', { limit: 1000 }, cursor)
        found.push(...(page.items as unknown as TaskRecord[]))
        if (page.next === null) return found
        cursor = page.next
      }
    },
    async history(id) {
      return (await engine.select('history', { ids: [id] }, null)).items as unknown as HistoryRecord[]
    },
    async proof() {
      return (await engine.select('proof', {}, null)).items as unknown as ProofRecord[]
    },
  }
}

/** Stops a process (SIGSTOP) at a moment in which it keeps nobody else from the store. */
export async function freeze(process: Process, store: Store): Promise<void> {
  await until('a moment between two writes', async () => {
    process.kill('SIGSTOP')
    // The kernel stops its threads one after the other.
    await passed(10)
    if (store.writable()) return true
    process.kill('SIGCONT')
    return false
  })
}
