// A plain client of a test, and an engine, which end with it.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'

export async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

export async function opened(url: string, options?: Parameters<typeof engineFor>[1]): Promise<Engine> {
  const engine = engineFor(url, options)
  await engine.open()
  onTestFinished(() => engine.close())
  return engine
}
