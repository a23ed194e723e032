// Walks every state a world can be in, breadth first: each move in each state, on the engine and on the model.
import assert from 'node:assert/strict'
import type { Change, Claimed, NewTask } from '../../dist/engine/contract.js'
import { engineFor as realEngineFor } from '../../dist/engines/open.js'
import type { EngineFor } from '../engine/subject.js'
import { Caller } from '../model/calls.js'
import { compareAll } from '../model/compare.js'
import { Model, type Rules } from '../model/model.js'
import * as operators from '../model/operators.js'
import * as verbs from '../model/verbs.js'
import { type Move, movesIn } from './moves.js'
import { copyOf, keyOf, type Scene } from './scene.js'
import { type Saved, Stage } from './stage.js'
import { unitMs, type World } from './worlds.js'

/** What was seen on a walk to the end. */
export interface Walk {
  states: number
  /** Moves played: each possible one in each state. */
  moves: number
  /** The longest of the shortest ways to a state. */
  depth: number
  /** The steps of the life cycle's table that were taken, as "event: from -> to". */
  steps: Set<string>
}

/** A state that was reached: how it can be set up again, and the shortest way to it. */
interface Place {
  scene: Scene
  now: number
  saved: Saved
  from: Place | null
  by: Move | null
}

const common = {
  ...{ leaseMs: unitMs, baseMs: unitMs, factor: 1, maxMs: unitMs, headStartMs: 0, width: 1, dedupWindowMs: 0 },
  ...{ resultKeepMs: 0, deadTo: null },
}

/** Throws at the first move after which the engine is not as the model says, with the shortest way there. */
export async function walk(world: World, engineFor: EngineFor = realEngineFor): Promise<Walk> {
  const walker = new Walker(world, engineFor)
  await walker.open()
  try {
    return await walker.walk()
  } finally {
    await walker.close()
  }
}

class Walker {
  private readonly stage: Stage
  private readonly steps = new Set<string>()
  private readonly note = (step: string) => void this.steps.add(step)

  constructor(
    private readonly world: World,
    engineFor: EngineFor,
  ) {
    this.stage = new Stage(engineFor)
  }

  async open(): Promise<void> {
    const { stage } = this
    await stage.open()
    const { leaseMs, deliveriesMax, releasesMax, baseMs, factor, maxMs, headStartMs, width, onDead } = this.rulesOf('q')
    const backoff = { baseMs, factor, maxMs, jitter: 'none' }
    const code = { leaseMs, deliveriesMax, releasesMax, backoff, headStartMs, perKey: { width, onDead } }
    for (const queue of ['q', 'other']) {
      const { deadTo } = this.rulesOf(queue)
      await stage.engine.configure('queue', queue, { code: { ...code, deadTo } }, 'test')
    }
  }

  close = (): Promise<void> => this.stage.engine.close()

  /** The other queue keeps its dead. */
  private rulesOf(queue: string): Rules {
    const rules = { ...common, ...this.world.rules }
    return queue === 'q' ? rules : { ...rules, deadTo: null }
  }

  async walk(): Promise<Walk> {
    const model = new Model(new Map(['q', 'other'].map((queue) => [queue, this.rulesOf(queue)])))
    const names = ['w0.1', 'w1.1'].slice(0, this.world.workers)
    let edge: Place[] = [this.place({ model, names, dead: [] }, null, null)]
    const known = new Set(edge.map(({ scene }) => keyOf(scene)))
    let moves = 0
    let depth = 0
    for (; edge.length > 0; depth++) {
      const next: Place[] = []
      for (const place of edge) {
        for (const move of movesIn(place.scene, this.world)) {
          moves += move.do === 'in vain' ? move.moves.length : 1
          const scene = await this.goOn(place, move)
          const key = keyOf(scene)
          if (move.do === 'in vain') await this.checked(place, move, async () => assert.equal(key, keyOf(place.scene)))
          if (known.has(key)) continue
          known.add(key)
          await this.checked(place, move, () => compareAll(this.stage.engine, scene.model))
          next.push(this.place(scene, place, move))
        }
      }
      edge = next
    }
    return { states: known.size, moves, depth, steps: this.steps }
  }

  private place(scene: Scene, from: Place | null, by: Move | null): Place {
    return { scene, now: this.stage.now, saved: this.stage.save(), from, by }
  }

  /** Plays the move in this place; throws when the engine does something else than the model. */
  private async goOn(place: Place, move: Move): Promise<Scene> {
    const { stage } = this
    stage.load(place.saved)
    stage.dead = new Set(place.scene.dead)
    // A little time passes with everything that happens, so that nothing happens at the same instant.
    stage.now = place.now + 1
    const scene: Scene = { ...place.scene, model: copyOf(place.scene.model, this.note) }
    return this.checked(place, move, async () => {
      tick(scene.model, stage)
      const after = await play(move, scene, stage)
      tick(scene.model, stage)
      stage.look(scene.model)
      return after
    })
  }

  private async checked<T>(place: Place, move: Move, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      const way = `${wayTo(place)}${told(move)}`
      throw new Error(`${this.world.name}, after ${way}: ${(cause as Error).message}`, { cause })
    }
  }
}

function tick(model: Model, stage: Stage): void {
  model.now = stage.now + engineAhead
  model.wallShift = 0
}

/** The engine's clock starts where the wall clock is. */
const engineAhead = 2_000_000_000_000

/** Does it to the engine and to the model, and compares what both answer. */
async function play(move: Move, scene: Scene, stage: Stage): Promise<Scene> {
  const { model, names, dead } = scene
  const { engine } = stage
  switch (move.do) {
    case 'in vain':
      for (const each of move.moves) await play(each, scene, stage)
      return scene
    case 'pass':
      stage.now += unitMs
      return scene
    case 'kill':
      return { ...scene, ...killed(names, dead, move.slot) }
    case 'sweep': {
      const { expired, died, matured, promoted } = await engine.sweep(1000)
      const found = dead.filter((name) => model.workers.has(name))
      assert.deepEqual({ expired, died, matured, promoted }, verbs.sweep(model, 1000, found), 'what a sweep did')
      return { ...scene, dead: [] }
    }
    case 'enqueue': {
      const task: NewTask = { queue: 'q', payload: '1', ...move.offer }
      const answer = await engine.enqueue(null, [task])
      assert.deepEqual(answer, verbs.enqueue(model, [task], [answer[0]?.id ?? '']), 'enqueue')
      return scene
    }
    case 'claim':
      await claim(move, scene, stage)
      return scene
    case 'settle': {
      const answer = await engine.settle({ worker: 'w', flush: null }, move.verdicts)
      assert.deepEqual(answer, verbs.settle(model, move.verdicts), 'settle')
      return scene
    }
    case 'extend': {
      const asks = [{ receipt: move.receipt, leaseMs: unitMs }]
      assert.deepEqual(await engine.extend('w', asks), verbs.extend(model, asks), 'extend')
      return scene
    }
    case 'amend': {
      const filter = { ids: [move.id] }
      const answer = await engine.amend(filter, move.change, 'test', { max: 10, dryRun: false })
      assert.deepEqual(answer, operators.amend(model, filter, move.change, 10, false), move.change.do)
      return scene
    }
  }
}

async function claim({ slot, queue, max }: Extract<Move, { do: 'claim' }>, scene: Scene, stage: Stage): Promise<void> {
  const { model, names } = scene
  const worker = names[slot] as string
  if (!model.workers.has(worker)) {
    await stage.join(worker)
    model.workerOf(worker).proof = worker
  }
  const caller = new Caller(
    model,
    () => 0,
    () => worker,
    new Map(),
  )
  const call = caller.claimCall({ worker, requestId: null, wants: [{ queue, types: null, max }] })
  const [answer] = (await Promise.allSettled([call.send(stage.engine)])) as [PromiseSettledResult<Claimed>]
  call.judge(answer)
}

/** The process of a slot's worker is gone; the slot's next worker has a name of its own. */
function killed(names: readonly string[], dead: readonly string[], slot: number): Pick<Scene, 'names' | 'dead'> {
  const name = names[slot] as string
  const [stem, generation] = name.split('.') as [string, string]
  return { dead: [...dead, name], names: names.with(slot, `${stem}.${Number(generation) + 1}`) }
}

function wayTo({ from, by }: Place): string {
  return from === null || by === null ? '' : `${wayTo(from)}${told(by)}, `
}

function told(move: Move): string {
  if (move.do === 'claim') return `claim of ${move.max} from ${move.queue} by worker ${move.slot}`
  if (move.do === 'enqueue') return `enqueue ${JSON.stringify(move.offer)}`
  if (move.do === 'settle') return `${move.verdicts.map(endingOf).join(' and ')} ${move.verdicts[0]?.receipt}`
  if (move.do === 'extend') return `extend ${move.receipt}`
  if (move.do === 'amend') return `${(move.change as Change).do} ${move.id}`
  if (move.do === 'in vain') return `in vain ${move.moves.map(told).join(', ')}`
  return move.do === 'kill' ? `death of worker ${move.slot}` : move.do
}

const endingOf = (verdict: Extract<Move, { do: 'settle' }>['verdicts'][number]) =>
  verdict.do === 'release' ? `release by ${verdict.by}` : verdict.do
