// Options that say which tasks a command means, and the filter they make.
import type { Command } from 'commander'
import type { Filter } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { type State, states } from '../task/lifecycle.js'
import { checkName } from '../task/limits.js'
import { choice, collected, whole } from './values.js'

interface Given {
  id?: string[]
  type?: string
  key?: string
  batch?: string
  state?: string[]
  fingerprint?: string
  text?: string
  limit?: string
  all?: boolean
}

/** Adds the options by which tasks are picked; those of dead letters have errors, the others states. */
export function filtered(command: Command, of: 'dead' | 'open'): Command {
  command
    .option('--id <id>', 'this task; may be repeated', collected)
    .option('--type <type>', 'tasks of this type')
    .option('--key <key>', 'tasks of this key')
    .option('--batch <name>', 'tasks of this batch')
  if (of === 'open') return command.option('--state <state>', `${states.join(', ')}; may be repeated`, collected)
  return command
    .option('--fingerprint <hash>', 'errors alike, as `dead groups` names them')
    .option('--text <text>', 'errors that hold this text')
}

/** Adds what a change to many tasks needs to be meant. */
export function guarded(command: Command): Command {
  return command
    .option('--all', 'all of them: without a filter this has to be said')
    .option('--yes', 'do not ask')
    .option('-n, --dry-run', 'only count')
}

/** The filter; throws PW_NAME_INVALID, PW_OPTION_INVALID. */
export function filterOf(queue: string | null, options: Record<string, unknown>): Filter {
  const given = options as Given
  const filter: Filter = {}
  if (queue !== null) filter.queue = queue
  for (const field of ['type', 'key', 'batch', 'fingerprint', 'text'] as const) {
    const value = given[field]
    if (value !== undefined) filter[field] = checkName(`--${field}`, value)
  }
  if (given.id !== undefined) filter.ids = given.id.map((id) => checkName('--id', id))
  if (given.state !== undefined) filter.states = given.state.map((state): State => choice('--state', state, states))
  return filter
}

/** Throws PW_FILTER_MISSING unless the command names tasks or says --all. */
export function refuseUnmeant(command: string, filter: Filter, options: Record<string, unknown>): void {
  const { queue: _, states: _states, ...named } = filter
  const picks = Object.keys(named).length > 0 || (options.state as string[] | undefined) !== undefined
  if (picks && options.all === true) {
    throw new PieceworkError('PW_USAGE', `${command} got --all and a filter; give one of them.`)
  }
  if (picks || options.all === true) return
  throw new PieceworkError('PW_FILTER_MISSING', `${command} got no filter, which would match every task.`)
}

/** How many lines a list has at most. */
export const limitOf = (options: Record<string, unknown>): number =>
  options.limit === undefined ? Number.POSITIVE_INFINITY : whole('--limit', String(options.limit), 1, 1_000_000_000)
