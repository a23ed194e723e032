// The conformance suite of the engine contract: every engine, ours or a stranger's, passes the same tests.
import { amendChapter } from './chapters/amend.js'
import { batchesChapter } from './chapters/batches.js'
import { claimChapter } from './chapters/claim.js'
import { deadChapter } from './chapters/dead.js'
import { deadToChapter } from './chapters/dead-to.js'
import { deathsChapter } from './chapters/deaths.js'
import { dedupChapter } from './chapters/dedup.js'
import { duplicatesChapter } from './chapters/duplicates.js'
import { enqueueChapter } from './chapters/enqueue.js'
import { extendChapter } from './chapters/extend.js'
import { followUpsChapter } from './chapters/followups.js'
import { handlesChapter } from './chapters/handles.js'
import { keysChapter } from './chapters/keys.js'
import { limitsChapter } from './chapters/limits.js'
import { moveChapter } from './chapters/move.js'
import { policyChapter } from './chapters/policy.js'
import { readingChapter } from './chapters/reading.js'
import { lapsedByDeathChapter, receiptsChapter } from './chapters/receipts.js'
import { restartChapter } from './chapters/restart.js'
import { resultsChapter } from './chapters/results.js'
import { routesChapter, sharedRoutesChapter } from './chapters/routes.js'
import { schedulesChapter, sharedSchedulesChapter, wallSchedulesChapter } from './chapters/schedules.js'
import { settleChapter } from './chapters/settle.js'
import { sweepChapter } from './chapters/sweep.js'
import { textsChapter } from './chapters/texts.js'
import { timeChapter, wallChapter } from './chapters/time.js'
import { type Chapter, type TestStore, Trial } from './trial.js'

/** What the author of an engine gives the suite. */
export interface EngineSubject {
  /** A store outlives its handles: it can be closed and opened again, and have two handles. */
  readonly persists: boolean
  /** `die` of a store works: the engine can know of a worker's death before its leases end. */
  readonly deaths: boolean
  /** The engine has one clock, its server's: no wall clock can jump away from it. Default false. */
  readonly oneClock?: boolean
  store(): TestStore | Promise<TestStore>
}

/** The functions of the test runner; those of vitest, jest and node:test fit. */
export interface TestHooks {
  describe(name: string, define: () => void): void
  it(name: string, run: () => Promise<void>): void
}

const chapters: readonly Chapter[] = [
  enqueueChapter,
  dedupChapter,
  duplicatesChapter,
  claimChapter,
  receiptsChapter,
  lapsedByDeathChapter,
  settleChapter,
  extendChapter,
  keysChapter,
  deadChapter,
  deadToChapter,
  batchesChapter,
  followUpsChapter,
  resultsChapter,
  sweepChapter,
  schedulesChapter,
  sharedSchedulesChapter,
  wallSchedulesChapter,
  policyChapter,
  limitsChapter,
  amendChapter,
  moveChapter,
  routesChapter,
  sharedRoutesChapter,
  readingChapter,
  textsChapter,
  timeChapter,
  wallChapter,
  deathsChapter,
  restartChapter,
  handlesChapter,
]

/**
 * Defines the tests of the engine contract for one engine. Each runs on a store of its own, and after each every
 * figure is compared with a full count.
 */
export function engineSuite(subject: EngineSubject, { describe, it }: TestHooks): void {
  for (const { title, needs, tests } of chapters) {
    if (needs === 'wallClock' ? subject.oneClock : needs !== undefined && !subject[needs]) continue
    describe(title, () => {
      for (const [name, test] of Object.entries(tests)) it(name, () => run(subject, test))
    })
  }
}

async function run(subject: EngineSubject, test: (t: Trial) => Promise<void>): Promise<void> {
  const store = await subject.store()
  try {
    const trial = new Trial(store)
    await trial.engine.open()
    await test(trial)
    await trial.proveCounts()
  } finally {
    await store.remove()
  }
}
