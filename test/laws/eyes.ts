// A store as the laws see it: its address, and eyes that read everything in it and never sweep.
import type { Engine } from '../../dist/engine/contract.js'
import type { HistoryRecord, ProofRecord, TaskRecord } from '../../dist/task/records.js'
import type { Entry } from './chronicle.js'

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

/** What an engine shows, page by page. */
export function eyesOf(engine: Engine): Pick<Store, 'task' | 'tasks' | 'history' | 'proof'> {
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
