// Starts PgBouncer, as Debian's package has it, in transaction mode before a test's server, and ends it with the file.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { until } from '../laws/processes.js'
import { freePort, type Server } from './server.js'

export interface Pooler {
  /** The same database, by way of the pooler. */
  through(url: string): string
  start(): Promise<void>
  /** Ends it as a crash would. */
  kill(): Promise<void>
}

export async function poolerBefore(server: Server, sessions: number): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-pooler-'))
  const port = await freePort()
  const file = join(folder, 'pooler.ini')
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${server.port} user=postgres password=password
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${sessions}
max_client_conn = 200
query_wait_timeout = 15
`,
  )
  chmodSync(folder, 0o755)
  let child: ChildProcess | null = null
  const kill = async () => {
    const ended = new Promise((resolve) => (child ? child.once('exit', resolve) : resolve(null)))
    child?.kill('SIGKILL')
    await ended
    child = null
  }
  afterAll(async () => {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const through = (url: string) => url.replace(/:\d+\//, `:${port}/`)
  const start = async () => {
    child = spawn('pgbouncer', [file], { stdio: 'ignore', ...notRoot() })
    await until('the pooler to answer', () =>
      server
        .sql(through(`postgres://postgres:password@127.0.0.1:${server.port}/postgres`), 'select 1')
        .catch(() => undefined),
    )
  }
  await start()
  return { through, start, kill }
}

/** Neither a pooler nor a server runs as root. */
export function notRoot(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
