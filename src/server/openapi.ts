// Makes the OpenAPI 3.1 document from the table of routes.

import type { Schema } from './check.js'
import { problemSchema, type Route } from './route.js'

type Json = Record<string, unknown>
/** As much of a Valibot schema as is read here. */
interface Node {
  type: string
  kind: string
  entries?: Record<string, Node>
  item?: Node
  wrapped?: Node
  value?: Node
  options?: readonly (Node | string)[]
  literal?: unknown
  requirement?: unknown
  pipe?: readonly Node[]
}

const kinds: Record<string, Json> = {
  string: { type: 'string' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  null: { type: 'null' },
}
const bounds: Record<string, string> = {
  min_value: 'minimum',
  max_value: 'maximum',
  min_length: 'minLength',
  max_length: 'maxLength',
}

/** JSON Schema of what a Valibot schema takes; only the kinds that our routes use. */
function jsonSchema(schema: Schema): Json {
  return of(schema as unknown as Node)
}

function of(node: Node): Json {
  const [base, ...actions] = node.pipe ?? [node]
  const found = plain(base as Node)
  for (const { type, requirement } of actions) {
    if (type === 'integer') found.type = 'integer'
    // What a query says is text until it was read; it is described as the number that it means.
    if (type === 'transform') found.type = 'number'
    const bound = bounds[type]
    if (bound)
      found[found.type === 'array' && bound.endsWith('Length') ? bound.replace('Length', 'Items') : bound] = requirement
  }
  return found
}

function plain(node: Node): Json {
  switch (node.type) {
    case 'strict_object':
    case 'object':
      return objectOf(node.entries ?? {}, node.type === 'strict_object')
    case 'array':
      return { type: 'array', items: of(node.item as Node) }
    case 'record':
      return { type: 'object', additionalProperties: of(node.value as Node) }
    case 'picklist':
      return { enum: [...(node.options ?? [])] }
    case 'literal':
      return { const: node.literal }
    case 'union':
      return { anyOf: (node.options as readonly Node[]).map(of) }
    case 'nullable':
      return { anyOf: [of(node.wrapped as Node), { type: 'null' }] }
    case 'optional':
      return of(node.wrapped as Node)
    default:
      return { ...kinds[node.type] }
  }
}

function objectOf(entries: Record<string, Node>, strict: boolean): Json {
  const required = Object.keys(entries).filter((field) => entries[field]?.type !== 'optional')
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(entries).map(([field, node]) => [field, of(node)])),
    ...(required.length > 0 ? { required } : {}),
    ...(strict ? { additionalProperties: false } : {}),
  }
}

/** The document; `version` is that of the package. */
export function openApi(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const item = paths[route.path] ?? {}
    item[route.method.toLowerCase()] = operationOf(route)
    paths[route.path] = item
  }
  return {
    openapi: '3.1.0',
    info: { title: 'piecework', version, description: 'A durable work queue: the HTTP API of its broker.' },
    paths,
    components: {
      schemas: { Problem: jsonSchema(problemSchema) },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function operationOf(route: Route): Json {
  const query = route.query ? Object.entries((route.query as unknown as Node).entries ?? {}) : []
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: kinds.string,
    })),
    ...query.map(([name, node]) => ({ name, in: 'query', required: node.type !== 'optional', schema: of(node) })),
    ...(route.keyed ? [{ name: 'Idempotency-Key', in: 'header', required: false, schema: kinds.string }] : []),
  ]
  const content = (schema: Schema, type = 'application/json') => ({ [type]: { schema: jsonSchema(schema) } })
  const answers = Object.entries(route.answers).map(([status, schema]) => [
    status,
    { description: route.summary, content: typeof schema === 'string' ? { [schema]: {} } : content(schema) },
  ])
  const problem = { $ref: '#/components/schemas/Problem' }
  return {
    operationId: nameOf(route),
    summary: route.summary,
    parameters,
    ...(route.body
      ? {
          requestBody: {
            required: true,
            content: { ...content(route.body), ...(route.lines ? { 'application/x-ndjson': {} } : {}) },
          },
        }
      : {}),
    responses: {
      ...Object.fromEntries(answers),
      default: { description: 'A refusal', content: { 'application/problem+json': { schema: problem } } },
    },
    security: route.scope === null ? [] : [{ token: [] }],
    ...(route.scope === null ? {} : { 'x-scopes': route.scope }),
  }
}

/** `getV1QueuesQTasks`: each method and path has one of its own. */
const nameOf = ({ method, path }: Route) =>
  method.toLowerCase() + path.replace(/[^a-z]+(\w)?/gi, (_, letter = '') => String(letter).toUpperCase())
