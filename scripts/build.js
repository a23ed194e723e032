// Turns src into dist: compiles, removes what no source stands behind any more, and stamps what was compiled.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const stamp = join(dist, '.built-from')

const filesIn = (folder) =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .sort()
    : []

/** A hash of everything the build reads; file times lie after a checkout, contents do not. */
function fingerprint() {
  const hash = createHash('sha256')
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
  for (const file of [...settings.map((name) => join(root, name)), ...filesIn(join(root, 'src'))]) {
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0')
  }
  return hash.digest('hex')
}

const sourceOf = (output) => join(root, 'src', output.slice(dist.length)).replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts')

/** True when dist holds the outcome of an error-free build of exactly these sources. */
export function isFresh() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint()
}

/** Builds; answers the compiler's exit code. With type errors everything is still emitted, but not stamped as fresh. */
export function build() {
  const before = fingerprint()
  rmSync(stamp, { force: true })
  for (const file of filesIn(dist)) {
    if (/\.(js|ts|map)$/.test(file) && !existsSync(sourceOf(file))) rmSync(file)
  }
  const emitted = new Set(filesIn(dist))
  const whole = filesIn(join(root, 'src'))
    .filter((file) => file.endsWith('.ts'))
    .every((file) => emitted.has(join(dist, file.slice(join(root, 'src').length)).replace(/\.ts$/, '.js')))
  // The compiler believes its own notes: when somebody deleted an output, only a fresh start writes it again.
  if (!whole) rmSync(join(dist, '.tsbuildinfo'), { force: true })
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const program = join(dist, 'cli', 'main.js')
  if (existsSync(program)) chmodSync(program, 0o755)
  if (status === 0) writeFileSync(stamp, before)
  return status ?? 1
}

if (realpathSync(process.argv[1] ?? '') === realpathSync(fileURLToPath(import.meta.url))) process.exitCode = build()
