// Tells a run as a story a person can read: of one task, or of everything that happened.
import type { Violation } from './checker/law.js'
import { type Change, World } from './checker/world.js'
import type { Asked, SimEvent } from './events.js'
import type { Plan } from './plan.js'

/** The lines of the story; `task` is an id or the number of an item, null for all. */
export function storyOf(
  plan: Plan,
  events: readonly SimEvent[],
  violations: readonly Violation[],
  task: string | null,
): string[] {
  const world = new World(plan)
  const lines: string[] = []
  const id = task === null ? null : (idOfItem(events, Number(task)) ?? task)
  const from = events[0]?.at ?? 0
  for (const [index, event] of events.entries()) {
    const change = event.is === 'change' ? world.meaning(event) : null
    const tells = id === null ? !isQuiet(event, world) : concerns(event, id, world)
    const text = tells ? told(event, change, world) : null
    if (text !== null) lines.push(`${(event.at - from).toFixed(1).padStart(9)}  ${text}`)
    for (const violation of violations) {
      if (violation.event === index) lines.push(`${'!'.padStart(9)}  ${violation.law}: ${violation.text}`)
    }
    world.apply(event)
  }
  return lines
}

function idOfItem(events: readonly SimEvent[], item: number): string | undefined {
  for (const event of events) if (event.is === 'accepted' && event.item === item) return event.id
  return undefined
}

/** Sweeps, beats and claims that found nothing: what they changed has lines of its own. */
function isQuiet(event: SimEvent, world: World): boolean {
  const asked = event.is === 'ask' ? event.asked : 'call' in event ? world.call(event.call)?.asked : undefined
  if (event.is === 'change' || event.is === 'refused' || asked === undefined) return false
  if (event.is === 'heard' || asked.verb === 'sweep') return true
  if (asked.verb === 'claim') return event.is !== 'answer' || JSON.stringify(event.answer).length < 40
  return asked.verb === 'worker' && asked.event === 'beat'
}

/** Faults and the ends of processes concern everybody. */
function concerns(event: SimEvent, id: string, world: World): boolean {
  switch (event.is) {
    case 'change':
      return (event.before ?? event.after)?.id === id
    case 'start':
    case 'end':
    case 'accepted':
      return event.id === id
    case 'ask':
      return named(event.asked, id)
    case 'lost':
      return named(event.asked, id)
    case 'ran':
    case 'heard':
    case 'refused':
      return named(world.call(event.call)?.asked, id)
    case 'answer':
      return JSON.stringify(event.answer).includes(id) || named(world.call(event.call).asked, id)
    case 'offered':
    case 'rejected':
    case 'figures':
      return false
    default:
      return true
  }
}

const named = (asked: Asked | undefined, id: string) =>
  asked !== undefined &&
  (asked.verb === 'settle' || asked.verb === 'extend') &&
  JSON.stringify(asked).includes(`"${id}.`)

function told(event: SimEvent, change: Change | null, world: World): string | null {
  switch (event.is) {
    case 'phase':
      return `--- ${event.phase}`
    case 'fault': {
      const { kind, ms, size } = event.fault
      return `*** ${kind} ${event.hits ?? '(nobody there)'}, ${ms} ms, size ${size}`
    }
    case 'up':
      return `${event.process} is up, ${event.wire ? 'across the wire' : 'beside the store'}`
    case 'killed':
      return `${event.process} is killed${event.by === null ? '' : ` by the handler of ${event.by}`}`
    case 'paused':
    case 'resumed':
    case 'stopping':
    case 'stopped':
      return `${event.process} is ${event.is}`
    case 'beat':
      return event.firstAt === null ? 'the schedule is removed' : `a schedule is set, first slot at ${event.firstAt}`
    case 'offered':
      return `${event.process} enqueues item ${event.item.item} ${JSON.stringify(event.item.script)}`
    case 'accepted':
      return `${event.process} hears: item ${event.item} is task ${event.id}${event.duplicate ? ', a duplicate' : ''}`
    case 'rejected':
      return `${event.process} hears: item ${event.item} is refused, ${event.code}`
    case 'ask':
      return `${event.process} asks${event.copy ? ' again (copy)' : ''}: ${askText(event.asked)}  #${event.call}`
    case 'change':
      return change && changeText(change)
    case 'batch':
      return batchText(event)
    case 'answer':
      return `store answers #${event.call}: ${JSON.stringify(event.answer)}`
    case 'refused':
      return `store refuses #${event.call}: ${event.code}`
    case 'lost':
      return `${event.process} gives up waiting for: ${askText(event.asked)}`
    case 'heard':
      return `${world.call(event.call)?.process} hears the answer to #${event.call}`
    case 'start':
      return `${event.process} starts delivery ${event.number} of ${event.id}`
    case 'end':
      return `${event.process} ends delivery ${event.number} of ${event.id}: ${event.how}`
    case 'ran':
    case 'felt':
    case 'figures':
      return null
  }
}

function batchText({ before, after, call, commit }: Extract<SimEvent, { is: 'batch' }>): string {
  const { name, total, done, dead, cancelled, follows, place } = after
  const state = after.finishedAt !== null ? 'finished' : after.sealed ? 'sealed' : 'open'
  const what = before === null ? 'is there' : `is ${state}`
  const next = follows === null ? '' : `, then item ${follows}${place === null ? '' : ` in ${place}`}`
  const figures = `${total} in all, ${done} done, ${dead} dead, ${cancelled} cancelled`
  return `    batch ${name} ${what} (${figures}${next}; commit ${commit}, #${call})`
}

function changeText({ what, before, after, life, by, commit }: Change): string {
  const row = after ?? before
  const states = `${before?.state ?? 'nothing'} -> ${after?.state ?? 'gone'}`
  const figures = `delivery ${row?.number}, spent ${row?.spent}, deaths ${row?.deaths}, place ${row?.place}`
  return `    ${life.id}: ${states} by ${what.step} (${figures}; commit ${commit}, #${by.call} of ${by.process})`
}

function askText(asked: Asked): string {
  if (asked.verb === 'settle') {
    const verdicts = asked.verdicts.map((v) => `${v.do}${v.by === null ? '' : ` by ${v.by}`} ${v.receipt}`)
    return `settle ${verdicts.join(', ')}`
  }
  if (asked.verb === 'claim')
    return `claim ${asked.max} as ${asked.worker}${asked.request === null ? '' : ` (${asked.request})`}`
  if (asked.verb === 'extend') return `extend ${asked.receipts.join(', ')} to ${asked.leaseMs.join(', ')} ms`
  if (asked.verb === 'worker') return `${asked.event} ${asked.worker}`
  if (asked.verb === 'enqueue') return `enqueue of ${asked.tasks.length}`
  if (asked.verb === 'configure') {
    const follows = asked.follows === null ? '' : `, item ${asked.follows.item} follows it`
    return `configure ${asked.kind} ${asked.name.split('\0').pop()}${asked.seals ? ', seal it' : ''}${follows}`
  }
  return asked.verb === 'amend' ? `${asked.change} ${asked.ids?.join(' ') ?? 'all'}` : asked.verb
}
