// Counts what the broker does, and writes it together with the store's figures as Prometheus reads it.
import type { Figures } from '../engine/contract.js'
import { states, totals } from '../task/lifecycle.js'

type Labels = Record<string, string | number>

export class Meter {
  readonly #requests = new Map<string, number>()
  #seconds = 0
  /** Long polls and streams under way. */
  waiting = 0
  /** Deliveries that went back because their answer did not leave whole. */
  givenBack = 0
  /** Bytes of bodies held in memory now. */
  buffered = 0

  /** `route` is a row of the table, never the path that was sent: that may hold anything, without end. */
  answered(route: string, status: number, ms: number): void {
    const labels = labelsOf({ route, status })
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1)
    this.#seconds += ms / 1000
  }

  text(figures: Figures, covers: (queue: string) => boolean): string {
    const types = figures.types.filter(({ queue }) => covers(queue))
    const each = (value: (row: Figures['types'][number]) => number | null) =>
      types.map((row): [Labels, number | null] => [{ queue: row.queue, type: row.type }, value(row)])
    const seconds = (ms: number | null) => (ms === null ? null : ms / 1000)
    return [
      ...family(
        'tasks',
        'gauge',
        'Tasks by state.',
        states.flatMap((state) =>
          types.map((row): [Labels, number] => [{ queue: row.queue, type: row.type, state }, row[state]]),
        ),
      ),
      ...totals.flatMap((total) =>
        family(
          `${total}_total`,
          'counter',
          `How often: ${total}.`,
          each((row) => row[total]),
        ),
      ),
      ...family(
        'backlog_age_seconds',
        'gauge',
        'How long the oldest ready task has been due.',
        each((row) => seconds(row.backlogAgeMs)),
      ),
      ...family(
        'lease_age_max_seconds',
        'gauge',
        'How long the oldest delivery has run.',
        each((row) => seconds(row.leaseAgeMaxMs)),
      ),
      ...family('workers', 'gauge', 'Workers that have joined.', [[{}, figures.workers.length]]),
      ...family('http_waiting', 'gauge', 'Long polls and streams under way.', [[{}, this.waiting]]),
      ...family('http_buffered_bytes', 'gauge', 'Bodies held in memory.', [[{}, this.buffered]]),
      ...family('http_given_back_total', 'counter', 'Deliveries whose answer did not leave whole.', [
        [{}, this.givenBack],
      ]),
      ...family('http_seconds_total', 'counter', 'Time spent on answers.', [[{}, this.#seconds]]),
      '# HELP piecework_http_requests_total Requests by route and status.',
      '# TYPE piecework_http_requests_total counter',
      ...[...this.#requests].map(([labels, count]) => `piecework_http_requests_total${labels} ${count}`),
      '',
    ].join('\n')
  }
}

/** A figure that is not known has no line: 0 would be a lie. */
function family(
  name: string,
  type: string,
  help: string,
  rows: readonly (readonly [Labels, number | null])[],
): string[] {
  const known = rows.filter(([, value]) => value !== null)
  const lines = known.map(([labels, value]) => `piecework_${name}${labelsOf(labels)} ${value}`)
  return [`# HELP piecework_${name} ${help}`, `# TYPE piecework_${name} ${type}`, ...lines]
}

function labelsOf(labels: Labels): string {
  const escaped = (value: string | number) => String(value).replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))
  const list = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return list.length === 0 ? '' : `{${list.join(',')}}`
}
