// What a row of the route table is, and what a handler is given and answers.
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as v from 'valibot'
import type { Caller, Scope } from './auth.js'
import type { Broker } from './broker.js'
import { type Schema, s } from './check.js'

/** One request, checked: everything that its handler may look at. */
export interface Call {
  readonly broker: Broker
  /** The names in the path, decoded; `q` is a queue that the caller may use. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  /** The body as it was sent. */
  readonly text: string
  readonly who: Caller
  /** The Idempotency-Key under the caller's name; null when there is none. */
  readonly key: string | null
  /** Aborts when the client has gone or the broker stops: long polls end then. */
  readonly ending: AbortSignal
  readonly request: IncomingMessage
}

export interface Reply {
  /** Default 200. */
  status?: number
  /** A value to send as JSON. */
  body?: unknown
  /** JSON that stands already, or text of another kind together with `type`. */
  text?: string
  type?: string
  /** Called when the answer could not be handed to the operating system whole. */
  undelivered?: () => void
  /** Writes the answer itself and resolves when it has ended. */
  stream?: (response: ServerResponse) => Promise<void>
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `{q}` stands for one percent-encoded segment. */
  readonly path: string
  /** Who may call it: a token with one of these scopes; null: anybody. */
  readonly scope: readonly Scope[] | null
  readonly summary: string
  readonly query?: Schema
  readonly body?: Schema
  /** Takes application/x-ndjson as well, which its handler reads from the request. */
  readonly lines?: true
  /** Repeatable by Idempotency-Key. */
  readonly keyed?: true
  /** The schema of each answer that is no refusal; a text names a kind that is not JSON. */
  readonly answers: Readonly<Record<number, Schema | string>>
  readonly handle: (call: Call) => Promise<Reply>
}

export const problemSchema = v.object({
  type: s.text,
  title: s.text,
  status: v.number(),
  detail: s.text,
  code: s.text,
  cure: s.text,
  details: v.record(s.text, v.unknown()),
})
