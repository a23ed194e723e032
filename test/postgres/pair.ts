// Two real clusters of Debian's package on loopback: one that writes, and a synchronous standby that can take over.
import { execFile } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { notRoot } from './pooler.js'
import { freePort, type Server, sqlAt } from './server.js'

export interface Pair extends Pick<Server, 'sql'> {
  /** A database on both, with both hosts in its URL. */
  readonly url: string
  /** Ends the first cluster as a crash would. */
  crash(): Promise<void>
  /** Makes the standby the one that writes, without a partner that must agree. */
  promote(): Promise<void>
}

const home = '/usr/lib/postgresql'

/** The newest version of Debian's package; throws when there is none. */
function programs(): string {
  const versions = existsSync(home) ? readdirSync(home).sort((a, b) => Number(b) - Number(a)) : []
  if (versions.length === 0) throw new Error(`Nothing in ${home}: install Debian's package postgresql.`)
  return join(home, versions[0] as string, 'bin')
}

export async function pairOfClusters(): Promise<Pair> {
  const bin = programs()
  const who = notRoot()
  const folder = mkdtempSync(join(tmpdir(), 'piecework-pair-'))
  chmodSync(folder, 0o755)
  if (who.uid !== undefined) chownSync(folder, who.uid, who.gid as number)
  const run = (program: string, ...args: string[]) =>
    promisify(execFile)(join(bin, program), args, { ...who, cwd: folder, timeout: 60_000 })
  const ports = [await freePort(), await freePort()] as const
  const [first, second] = [join(folder, 'first'), join(folder, 'second')]
  const start = (data: string) => run('pg_ctl', '-D', data, '-l', `${data}.log`, '-w', 'start')
  const settings = (port: number) =>
    `\nport = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nwal_level = replica\n`
  onTestFinished(async () => {
    for (const data of [first, second]) await run('pg_ctl', '-D', data, '-m', 'immediate', 'stop').catch(() => {})
    rmSync(folder, { recursive: true, force: true })
  })

  await run('initdb', '-D', first, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync')
  appendFileSync(join(first, 'postgresql.conf'), settings(ports[0]))
  await start(first)
  const at = (port: number, name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`
  await run('pg_basebackup', '-D', second, '-R', '-X', 'stream', '-d', at(ports[0], 'postgres'))
  appendFileSync(join(second, 'postgresql.conf'), settings(ports[1]))
  await start(second)
  const demand = (names: string) => [
    `alter system set synchronous_standby_names = '${names}'`,
    'select pg_reload_conf()',
  ]
  for (const text of ['create database work', ...demand('*')]) await sqlAt(at(ports[0], 'postgres'), text)
  return {
    url: `postgres://postgres@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/work`,
    sql: (_, text, values) => sqlAt(at(ports[0], 'work'), text, values),
    async crash() {
      await run('pg_ctl', '-D', first, '-m', 'immediate', 'stop')
    },
    async promote() {
      await run('pg_ctl', '-D', second, '-w', 'promote')
      for (const text of demand('')) await sqlAt(at(ports[1], 'postgres'), text)
    },
  }
}
