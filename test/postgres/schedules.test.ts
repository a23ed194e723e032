// Field case 12 on PostgreSQL: eight processes set one schedule while it fires and they are killed.
import { it } from 'vitest'
import { deployUnderKills } from '../laws/deploys.js'
import { postgresSubject } from './law-store.js'
import { serverOfFile } from './server.js'

const subject = postgresSubject(serverOfFile())

it('makes one task for each slot while 8 processes set its schedule and are killed', async () => {
  const store = await subject.fresh()
  try {
    await deployUnderKills(store)
  } finally {
    await store.remove()
  }
}, 180_000)
