// Runs the tests of the PostgreSQL engine on other versions of PostgreSQL, which it installs beside the tests.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'test', 'postgres', 'versions')
const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const versions = Object.keys(dependencies).map((name) => name.replace('postgres-', ''))

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { version: { type: 'string', multiple: true, default: versions } },
})
const wanted = /** @type {string[]} */ (values.version)
const unknown = wanted.find((version) => !versions.includes(version))
if (unknown !== undefined) {
  console.error(`There is no PostgreSQL ${unknown} in ${folder}; there are ${versions.join(', ')}.`)
  process.exit(2)
}

/** Runs a program with this process's terminal; answers whether it succeeded. */
const ran = (program, args, cwd, env = {}) =>
  spawnSync(program, args, { cwd, env: { ...process.env, ...env }, stdio: 'inherit' }).status === 0

const missing = wanted.some((version) => !existsSync(join(folder, 'node_modules', `postgres-${version}`)))
if (missing && !ran('npm', ['ci', '--no-audit', '--no-fund'], folder)) process.exit(1)

const files = positionals.length > 0 ? positionals : ['test/postgres']
const rows = wanted.map((version) => {
  console.log(`\nPostgreSQL ${version}`)
  const startedAt = performance.now()
  const ok = ran('npx', ['vitest', 'run', '--maxWorkers=1', ...files], root, { PW_POSTGRES: version })
  return {
    PostgreSQL: version,
    result: ok ? 'passed' : 'FAILED',
    seconds: Math.round((performance.now() - startedAt) / 1000),
  }
})
console.table(rows)
process.exit(rows.every(({ result }) => result === 'passed') ? 0 : 1)
