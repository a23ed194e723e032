// PostgreSQL as a subject of the laws: a database of its own that keeps a chronicle, on the server of the test file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineFor } from '../../dist/engines/open.js'
import { eyesOf, type Store, type Subject } from '../laws/eyes.js'
import { keepChronicle, readChronicle } from './chronicle.js'
import type { Server } from './server.js'

export const postgresSubject = (server: () => Promise<Server>): Subject => ({
  name: 'PostgreSQL',
  fresh: async () => lawStore(await server()),
})

async function lawStore(server: Server): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-laws-'))
  const url = await server.database()
  const engine = engineFor(url)
  await engine.open()
  await keepChronicle(server, url)
  return {
    ...eyesOf(engine),
    url,
    folder,
    file: '',
    engine,
    chronicle: (tasks) => readChronicle(url, tasks),
    // Rows are locked, never the store.
    writable: () => true,
    async remove() {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
