// Installs the packed tarball into empty folders, with and without SQLite, and uses it there as a newcomer would.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const temp = mkdtempSync(join(tmpdir(), 'piecework-pack-'))

/** Runs a program in a folder; answers its stdout, throws with everything it said when it fails. */
function run(folder, program, ...args) {
  const { PIECEWORK_URL, ...env } = process.env
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: folder,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  })
  if (status !== 0) {
    throw new Error(`${program} ${args.join(' ')} failed (${status ?? error?.message})\n${stdout}\n${stderr}`)
  }
  return stdout
}

function expect(condition, what) {
  if (!condition) throw new Error(`pack smoke: ${what}`)
  console.log(`ok  ${what}`)
}

function newApp(name, tarball, ...options) {
  const app = join(temp, name)
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name, version: '1.0.0', private: true }))
  run(app, 'npm', 'install', '--no-audit', '--no-fund', ...options, tarball)
  return app
}

/** The library example of the README, as the JavaScript that a reader's machine would run. */
function readmeExample() {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const blocks = [...readme.matchAll(/^```(?:ts|js)\n([\s\S]*?)^```/gm)].map((match) => match[1] ?? '')
  const example = blocks.find((code) => /from 'piecework'/.test(code))
  if (example === undefined) throw new Error("pack smoke: README.md has no example that imports from 'piecework'")
  return ts.transpile(example, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext })
}

const firstTask = `
const pw = await connect('sqlite:work.db')
const mail = pw.queue('mail')
await mail.enqueue({ to: 'ada' })
const seen = []
const worker = mail.work((payload) => { seen.push(payload.to) })
await mail.drained()
await worker.stop()
await pw.close()
console.log(seen.join())
`

/** Every package is there but SQLite: importing works, connecting explains. */
function withoutSqlite(tarball) {
  const app = newApp('without-sqlite', tarball, '--omit=optional')
  expect(!existsSync(join(app, 'node_modules', 'better-sqlite3')), 'installs without its optional dependency')
  const script = "import('piecework').then((m) => m.connect('sqlite:work.db')).then(String, (e) => e.code)"
  const answer = run(app, process.execPath, '-e', `${script}.then(console.log)`)
  expect(answer.trim() === 'PW_NO_SQLITE', `without SQLite, connect() refuses with PW_NO_SQLITE (${answer.trim()})`)
  const version = run(app, 'npx', '--no-install', 'piecework', 'version')
  expect(version.includes('0.') || version.includes('1.'), 'without SQLite, the command line still starts')
}

/** npm fetches SQLite's package but does not compile it again: the outcome of this clone's own install is put in. */
function withSqlite(tarball, version) {
  const app = newApp('with-sqlite', tarball, '--ignore-scripts')
  const compiled = join('node_modules', 'better-sqlite3', 'build')
  cpSync(join(root, compiled), join(app, compiled), { recursive: true })

  writeFileSync(join(app, 'first.mjs'), `import { connect } from 'piecework'${firstTask}`)
  expect(run(app, process.execPath, 'first.mjs').trim() === 'ada', 'import: a task is enqueued, run and acked')

  writeFileSync(join(app, 'first.cjs'), `const { connect } = require('piecework')\n;(async () => {${firstTask}})()`)
  expect(run(app, process.execPath, 'first.cjs').trim() === 'ada', 'require: a task is enqueued, run and acked')

  const testing = run(
    app,
    process.execPath,
    '-e',
    "import('piecework/testing').then((m) => console.log(Object.keys(m).length))",
  )
  expect(Number(testing) > 0, 'piecework/testing can be imported')

  writeFileSync(join(app, 'readme.mjs'), readmeExample())
  run(app, process.execPath, 'readme.mjs')
  expect(true, 'the library example of the README runs')

  expect(run(app, 'npx', '--no-install', 'piecework', 'version').includes(version), 'npx piecework version')
}

try {
  const [packed] = JSON.parse(run(root, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', temp))
  const tarball = join(temp, packed.filename)
  console.log(`${packed.filename}: ${packed.files.length} files, ${Math.round(packed.size / 1024)} KiB`)
  expect(
    packed.files.every(({ path }) => !/^(test|bench|scripts|examples|\.)/.test(path)),
    'only what users need is packed',
  )
  expect(
    ['library', 'commands', 'errors', 'transactions'].every((page) =>
      packed.files.some(({ path }) => path === `docs/${page}.md`),
    ),
    'the pages for users are packed',
  )
  withoutSqlite(tarball)
  withSqlite(tarball, packed.version)
} finally {
  rmSync(temp, { recursive: true, force: true })
}
