// Runs random histories: on fail it shrinks, and says seed and path for a replay.
import fc from 'fast-check'
import { type EngineFor, sqliteStore } from '../engine/subject.js'
import type { Seen } from './calls.js'
import { type History, histories } from './moves.js'
import { play } from './play.js'

export interface Run {
  /** On a file that is closed and opened again, with two handles; else in memory with one. */
  file: boolean
  runs: number
  seed: number
  /** Where fast-check found the failure, to go there at once. */
  path?: string | undefined
  /** Shrink a failing history; default true. */
  shrink?: boolean
  engineFor?: EngineFor
}

export interface Report {
  /** Null when every history agreed; else the story of the smallest one that did not. */
  failure: string | null
  seen: Seen
  runs: number
}

/** Time to look for a smaller history that fails too. */
const shrinkMs = 60_000

export async function runHistories(run: Run): Promise<Report> {
  const seen: Seen = new Map()
  let shrinkUntil = Number.POSITIVE_INFINITY
  const property = fc.asyncProperty(histories(run.file), async (history) => {
    if (performance.now() > shrinkUntil) return
    try {
      await playOnce(history, run, seen)
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + shrinkMs)
      throw error
    }
  })
  const { seed, path, runs: numRuns } = run
  const details = await fc.check(property, {
    ...{ seed, numRuns, endOnFailure: run.shrink === false },
    ...(path === undefined ? {} : { path }),
  })
  if (!details.failed) return { failure: null, seen, runs: details.numRuns }
  const moves = details.counterexample?.[0].moves.map((move) => `  ${JSON.stringify(move)}`) ?? []
  const rules = JSON.stringify(details.counterexample?.[0].rules)
  const error = details.errorInstance instanceof Error ? details.errorInstance.stack : String(details.errorInstance)
  const where = `PW_MODEL_PATH=${details.counterexamplePath} PW_MODEL_FILE=${Number(run.file)}`
  const again = `PW_MODEL_SEED=${details.seed} ${where}`
  const failure = [`After ${details.numRuns} histories, smallest of ${details.numShrinks}:`, rules, ...moves, error]
  return {
    failure: [...failure, `Replay: ${again} npx vitest run test/model/histories.test.ts`].join('\n'),
    seen,
    runs: details.numRuns,
  }
}

async function playOnce(history: History, { file, engineFor }: Run, seen: Seen): Promise<void> {
  const store = sqliteStore({ file, ...(engineFor ? { engineFor } : {}), options: { durability: 'relaxed' } })
  try {
    await play(history, store, file ? 2 : 1, seen)
  } finally {
    await store.remove()
  }
}
