// Requests that mean harm, made from a seed, and what came back over their raw sockets.
import { connect } from 'node:net'
import { seededRandom } from '../../dist/testing/seeded-random.js'

export interface Attack {
  name: string
  /** Written as they stand; a pause for the other side between two of them. */
  bytes: Buffer[]
  /** It may leave the broker waiting for more, and hangs up then; of all others the broker ends the connection. */
  hangsUp: boolean
}

type Draw = (count: number) => number
type Maker = (draw: Draw) => Buffer | Buffer[]

const text = (...lines: string[]) => Buffer.from(lines.join('\r\n'), 'latin1')
const get = (path: string, ...headers: string[]) =>
  text(`GET ${path} HTTP/1.1`, 'host: 127.0.0.1', ...headers, 'connection: close', '', '')

function post(path: string, body: Buffer | string, ...headers: string[]): Buffer {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body)
  const kind = headers.some((one) => one.startsWith('content-type')) ? [] : ['content-type: application/json']
  const head = ['host: 127.0.0.1', ...kind, `content-length: ${bytes.length}`, ...headers, 'connection: close']
  return Buffer.concat([text(`POST ${path} HTTP/1.1`, ...head, '', ''), bytes])
}

const tasks = '/v1/queues/q/tasks'
/** A request that would be answered 201 if it were taken for one of its own. */
const smuggled = post('/v1/queues/smuggled/tasks', '{"payload":"smuggled"}').toString('latin1')
const chunked = (...chunks: string[]) =>
  text(
    `POST ${tasks} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    'transfer-encoding: chunked',
    '',
    ...chunks,
  )

const kindsOfBody = [
  'text/plain',
  'application/x-ndjson',
  'multipart/form-data',
  'application/json; charset=utf-16',
  'x',
]

const garbage = (draw: Draw, bytes: number) => Buffer.from(Array.from({ length: draw(bytes) + 1 }, () => draw(256)))
const oneOf = <T>(draw: Draw, values: readonly T[]): T => values[draw(values.length)] as T

const names = [
  ...['..', '%2e%2e', '%2e%2e%2f%2e%2e%2fetc%2fpasswd', '..%5c..', '%00', 'a%00b', '%c0%af', '%ff', '%ed%a0%80', '%'],
  ...['__proto__', 'constructor', 'hasOwnProperty', "'; drop table piecework_task; --", '%27%20or%201%3D1', '%2f', '*'],
  ...['a'.repeat(201), 'a'.repeat(8000), '%E2%80%AE', '{q}', '%7Bq%7D', '$(id)', '`id`', '%0d%0aset-cookie:x', '日本'],
]
const bodies = [
  ...['', ' ', 'null', '[]', '{}', '"', '{', '[[]]', '{"payload":1', '{"payload":undefined}', 'NaN', "{'payload':1}"],
  ...[
    '{"__proto__":{"x":1},"payload":1}',
    '{"payload":{"__proto__":{"polluted":true}}}',
    '{"constructor":1,"payload":1}',
  ],
  ...[
    '{"payload":1e999}',
    '{"payload":-0}',
    `{"payload":${'9'.repeat(400)}}`,
    '{"payload":"\\ud800"}',
    '{"payload":1}{}',
  ],
  ...[
    '{"payload":1,"delayMs":-1}',
    '{"payload":1,"delayMs":1e308}',
    '{"payload":1,"priority":"high"}',
    '{"payload":1,"key":""}',
  ],
  ...[
    '{"payload":1,"dueAt":"+275760-09-13"}',
    '{"payload":1,"tx":1}',
    '{"payload":1,"toString":1}',
    '\ufeff{"payload":1}',
  ],
  `{"payload":1,"key":"${"'; delete from piecework_task; --".repeat(2)}"}`,
  `{"payload":${'['.repeat(100_000)}`,
  `{"payload":${'['.repeat(70)}${']'.repeat(70)}}`,
  `{"payload":"${'x'.repeat(1_048_577)}"}`,
  `[${'{"payload":1},'.repeat(1001)}{"payload":1}]`,
]

const makers: Record<string, Maker> = {
  noise: (draw) => garbage(draw, 400),
  'a head of noise': (draw) =>
    Buffer.concat([text('GET / HTTP/1.1', 'host: a', 'x: '), garbage(draw, 200), text('', '', '')]),
  'a line that is none': (draw) =>
    text(
      oneOf(draw, ['GET', 'GET /', 'GET / HTTP/9.9', 'get / http/1.1', ' / HTTP/1.1', 'GET  / HTTP/1.1', '\0']),
      '',
      '',
    ),
  'a method': (draw) =>
    text(
      `${oneOf(draw, ['TRACE', 'CONNECT', 'OPTIONS', 'PROPFIND', 'PURGE', 'HEAD', 'M-SEARCH'])} ${tasks} HTTP/1.1`,
      'host: a',
      'connection: close',
      '',
      '',
    ),
  'a target': (draw) =>
    get(
      oneOf(draw, [
        '*',
        '//evil.example/',
        'http://evil.example/v1/queues',
        '/../../etc/passwd',
        '/v1/../v1/queues',
        '/%2e%2e/',
        '/v1//queues',
        '/?a=1&a=2',
        '/v1/queues?limit=-1',
        '/v1/queues?limit=1e9',
        '/v1/queues?cursor=%ff',
        `/${'a'.repeat(7000)}`,
      ]),
    ),
  'a name in the path': (draw) =>
    get(`/v1/queues/${oneOf(draw, names)}${oneOf(draw, ['', '/tasks', '/dead', `/tasks/${oneOf(draw, names)}`])}`),
  'two lengths': (draw) => {
    const second = oneOf(draw, [
      'content-length: 3',
      'content-length: +5',
      'content-length: 5, 5',
      'content-length: 0x5',
      'transfer-encoding: chunked',
      'transfer-encoding: xchunked',
      'transfer-encoding : chunked',
      'transfer-encoding: chunked, identity',
    ])
    const head = ['host: 127.0.0.1', 'content-type: application/json', 'content-length: 5', second]
    return text(`POST ${tasks} HTTP/1.1`, ...head, '', `0\r\n\r\n${smuggled}`)
  },
  'chunks that are none': (draw) =>
    chunked(
      oneOf(draw, ['zz', '-1', '5;ext=\0', 'ffffffffffffffff', '5\r\n{"pay', `1\n{\n0\n\n${smuggled}`, '0x1', ' 1']),
    ),
  'a length that lies': (draw) => {
    const length = oneOf(draw, ['10000000000', '99999999999999999999', '-1', '1.5', ''])
    return text(`POST ${tasks} HTTP/1.1`, 'host: 127.0.0.1', `content-length: ${length}`, '', smuggled)
  },
  'headers without end': (draw) => {
    const many = oneOf(draw, [
      [`x: ${'a'.repeat(20_000)}`],
      Array.from({ length: 3000 }, (_, n) => `x${n}: 1`),
      ['cookie: a\r\n folded: b'],
    ])
    return get('/v1/queues', ...many)
  },
  'a header that is none': (draw) =>
    get(
      '/healthz',
      oneOf(draw, [
        'no colon',
        ': no name',
        'x\0: 1',
        'x: a\0b',
        'x: a\rb',
        'host: evil.example',
        'expect: 200-maybe',
        'upgrade: websocket\r\nconnection: upgrade',
      ]),
    ),
  'a token': (draw) =>
    get(
      '/v1/queues',
      `authorization: ${oneOf(draw, ['Bearer', 'Bearer \xff', `Bearer ${'a'.repeat(9000)}`, 'Bearer pw_0_0', 'x'])}`,
    ),
  'a body': (draw) => post(tasks, oneOf(draw, bodies)),
  'a body of bytes': (draw) =>
    post(tasks, Buffer.concat([Buffer.from('{"payload":"'), garbage(draw, 60), Buffer.from('"}')])),
  'a body of another kind': (draw) => post(tasks, oneOf(draw, bodies), `content-type: ${oneOf(draw, kindsOfBody)}`),
  'a settle': (draw) =>
    post(
      '/v1/settle',
      oneOf(draw, [
        '{"settles":[{"receipt":"../1","outcome":"ack"}]}',
        '{"settles":[{"receipt":"1.1.1.1","outcome":"__proto__"}]}',
        `{"settles":[{"receipt":"${'9'.repeat(500)}","outcome":"ack"}]}`,
        '{"settles":{}}',
        '{"settles":[{"receipt":"0-0-0-0","outcome":"bury","error":"\\u0000"}]}',
      ]),
    ),
  'a claim': (draw) =>
    post(
      '/v1/queues/none/claims',
      oneOf(draw, [
        '{"worker":"w","max":1e9}',
        '{"worker":"","max":1}',
        '{"worker":"w","waitMs":-1}',
        '{"worker":"w","leaseMs":0}',
        '{"worker":"w\\u0000"}',
        '{"worker":"w","types":["__proto__"]}',
        '{"worker":"w","claimId":""}',
      ]),
    ),
  'a key': (draw) =>
    post(tasks, '{"payload":1}', `idempotency-key: ${oneOf(draw, ['', '\x7f', 'a'.repeat(300), '\xff', ' '])}`),
  'a policy': (draw) => {
    const body = oneOf(draw, [
      '{"leaseMs":-1}',
      '{"__proto__":{"leaseMs":1}}',
      '{"uses":["\'"]}',
      '{"backoff":[]}',
      '{"perKey":{"width":1e99}}',
      '{"leaseMs":"1"}',
    ])
    return Buffer.from(post('/v1/queues/q', body).toString('latin1').replace('POST', 'PATCH'), 'latin1')
  },
  'requests in a row': () =>
    Buffer.from(
      `${get('/healthz').toString('latin1').replace('connection: close', 'x: y')}${smuggled.slice(0, 60)}`,
      'latin1',
    ),
  'half a request': (draw) => {
    const whole = post(tasks, '{"payload":1}')
    return whole.subarray(0, draw(whole.length))
  },
  'a body in two parts, the second late': () => {
    const whole = post(tasks, '{"payload":"late"}')
    return [whole.subarray(0, whole.length - 4), whole.subarray(whole.length - 4)]
  },
}

const unfinished = new Set([
  ...['noise', 'a head of noise', 'a line that is none', 'a method', 'two lengths', 'chunks that are none'],
  ...['a length that lies', 'a header that is none', 'requests in a row', 'half a request'],
])

/** So many attacks, every kind in turn, the same ones for the same seed. */
export function* attacks(count: number, seed: number): Generator<Attack> {
  const random = seededRandom(seed)
  const draw = (n: number) => Math.floor(random() * n)
  const kinds = Object.entries(makers)
  for (let n = 0; n < count; n++) {
    const [name, make] = kinds[n % kinds.length] as [string, Maker]
    const made = make(draw)
    yield { name, bytes: Array.isArray(made) ? made : [made], hangsUp: unfinished.has(name) }
  }
}

/** What the broker wrote until it, or we after our last byte, ended the connection; '' when it wrote nothing. */
export function strike(port: number, { bytes, hangsUp }: Attack): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      answer += part
    })
    socket.on('error', () => {})
    socket.once('close', () => resolve(answer))
    const next = (at: number) => {
      const part = bytes[at]
      if (part === undefined) return void (hangsUp && socket.end())
      socket.write(part, () => setImmediate(next, at + 1))
    }
    socket.once('connect', () => next(0))
  })
}

export interface Heard {
  status: number
  head: string
}

/** Every answer in what a connection was sent. */
export const heard = (answer: string): Heard[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) [^\r]*\r\n([\s\S]*?)\r\n\r\n/g)].map(([, status, head]) => ({
    status: Number(status),
    head: (head ?? '').toLowerCase(),
  }))
