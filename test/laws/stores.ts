// The engines that the laws run on, each with a way to a fresh store and to what that store has written down.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { postgresSubject } from '../postgres/law-store.js'
import { serverOfFile } from '../postgres/server.js'
import { canLock, keepChronicle, readChronicle } from './chronicle.js'
import { eyesOf, type Store, type Subject } from './eyes.js'
import { type Process, passed, until } from './processes.js'

/** For what only a file on one machine can show. */
export const sqlite: Subject = {
  name: 'SQLite',
  async fresh() {
    const folder = mkdtempSync(join(tmpdir(), 'piecework-laws-'))
    const file = join(folder, 'work.db')
    const engine = engineFor(`sqlite:${file}`)
    await engine.open()
    keepChronicle(file)
    return {
      ...eyesOf(engine),
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

/** Every engine the laws hold for; a test file that uses none of PostgreSQL starts no server. */
export const subjects: readonly Subject[] = [sqlite, postgresSubject(serverOfFile())]

/** A fresh store that goes when the test ends. */
export async function storeOf(subject: Subject): Promise<Store> {
  const store = await subject.fresh()
  onTestFinished(() => store.remove())
  return store
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
