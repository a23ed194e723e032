// A plain client of a test, which ends with it.
import pg from 'pg'
import { onTestFinished } from 'vitest'

export async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}
