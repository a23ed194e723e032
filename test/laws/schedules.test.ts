// Field case 12: deploys set the same schedule while it fires, with kills: one task for each slot, none missing.
import { it } from 'vitest'
import { deployUnderKills } from './deploys.js'
import { sqlite, storeOf } from './stores.js'

it('makes one task for each slot while 8 processes set its schedule and are killed', async () => {
  await deployUnderKills(await storeOf(sqlite))
}, 120_000)
