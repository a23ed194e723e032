// Two tasks and two workers in every state they can be in: each event of the life cycle, each time against the engine.
import { describe, expect, it } from 'vitest'
import { type LifeEvent, lifecycle } from '../../dist/task/lifecycle.js'
import { walk } from './walk.js'
import { worlds } from './worlds.js'

/** States and moves of each world: a change of the table, of the moves or of a world says here what it brought. */
const sizes: Record<string, { states: number; moves: number }> = {
  'leases, deaths and dead letters': { states: 988, moves: 27102 },
  'one key': { states: 164, moves: 3362 },
  'one key that a dead task holds': { states: 144, moves: 2886 },
  releases: { states: 199, moves: 3759 },
  deadlines: { states: 520, moves: 5228 },
  'another queue': { states: 563, moves: 8760 },
  'duplicates of one key': { states: 192, moves: 2289 },
  'duplicates without a key': { states: 25, moves: 328 },
  'a queue that takes the dead': { states: 96, moves: 774 },
  suspects: { states: 427, moves: 4198 },
}

/** Every step that was taken in some world. */
const taken = new Set<string>()

describe('every state', () => {
  it.each(worlds)('$name', { timeout: 120_000 }, async (world) => {
    const { states, moves, steps } = await walk(world)
    for (const step of steps) taken.add(step)
    expect({ states, moves }).toEqual(sizes[world.name])
  })
})

describe('every line of the table', () => {
  it.each(Object.keys(lifecycle) as LifeEvent[])('%s', (event) => {
    const { from, to } = lifecycle[event]
    const steps = [...taken].filter((step) => step.startsWith(`${event}: `)).map((step) => step.split(/: | -> /))
    const seen = (index: number) => [...new Set(steps.map((step) => step[index] ?? ''))].sort()
    expect({ from: seen(1), to: seen(2) }).toEqual({ from: from.map(String).sort(), to: to.map(String).sort() })
  })
})
