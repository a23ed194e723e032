// Runs every snippet of the pages for users as it stands there, and compares what comes out with what the page says.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { policyDefaults } from '../dist/task/limits.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const textOf = (...path: string[]) => readFileSync(join(root, ...path), 'utf8')
const readme = textOf('README.md')
/** Two cores that others use as well. */
const slowMs = 120_000

interface Block {
  language: string
  text: string
  line: number
}

const blocksOf = (page: string): Block[] =>
  [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] ?? '',
    text: match[2] ?? '',
    line: page.slice(0, match.index).split('\n').length,
  }))

/** A folder as a reader's: `piecework` can be imported, and is on the path. */
const folder = mkdtempSync(join(tmpdir(), 'piecework-readme-'))
mkdirSync(join(folder, 'node_modules'))
symlinkSync(root, join(folder, 'node_modules', 'piecework'), 'dir')
mkdirSync(join(folder, 'bin'))
const program = join(folder, 'bin', 'piecework')
writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'dist', 'cli', 'main.js')}" "$@"\n`)
chmodSync(program, 0o755)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs shell words there; answers everything they wrote, in its order. */
function shell(words: string) {
  const { PIECEWORK_URL: _, ...env } = process.env
  const { status, stdout } = spawnSync('sh', ['-c', `(${words}) 2>&1`], {
    cwd: folder,
    env: { ...env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
    encoding: 'utf8',
    timeout: slowMs,
  })
  return { status, output: stdout }
}

/** Without what differs between two good runs: times, rates, who was killed, names made of paths. */
const masked = (text: string) =>
  text
    .replace(/sqlite:\S+/g, 'sqlite:STORE')
    .replace(/\S+\/piecework\.db/g, 'STORE')
    .replace(/-[0-9a-f]{10}\b/g, '-HASH')
    .replace(/[\d.]+ m?s\b/g, 'TIME')
    .replace(/\d+ items a second/g, 'N items a second')
    .replace(/(worker|task number|redelivered) +\d+/g, '$1 N')
    .replace(/ +/g, ' ')
    .trim()

/** The page's lines, each `…` standing for any lines. */
const pattern = (text: string) => {
  const parts = masked(text).split('\n')
  const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${escaped.join('\n').replaceAll('…\n', '(?:.*\n)*?')}$`)
}

/** What cannot run inside a test of this tree, and the very program behind it. */
const standIns = new Map([
  ['npm ci && npm start', `"${process.execPath}" "${join(root, 'examples', 'thumbnails', 'main.js')}" --folder .`],
])

const sorted = (text: string) => masked(text).split('\n').sort()

/** Commands with what they print: `$ ` starts a command, the lines up to the next are its output. */
function runConsole(block: Block): void {
  for (const step of block.text.split(/^\$ /m).slice(1)) {
    const [command = '', ...lines] = step.split('\n')
    const { output } = shell(standIns.get(command) ?? command)
    const said = lines.join('\n')
    if (said.includes('…')) expect(masked(output)).toMatch(pattern(said))
    // Commands that run side by side may end in any order.
    else expect(sorted(output)).toEqual(sorted(said))
  }
}

function runProgram(block: Block, printed: string | undefined): void {
  const file = `readme-${block.line}.mjs`
  writeFileSync(join(folder, file), block.text)
  const { status, output } = shell(`"${process.execPath}" ${file}`)
  expect({ status, output }).toEqual({ status: 0, output: printed ?? '' })
}

/** A test for each block of a page. */
function runs(blocks: readonly Block[]): void {
  for (const [index, block] of blocks.entries()) {
    const { language, line, text } = block
    const next = blocks[index + 1]
    if (language === 'text') {
      it(`line ${line}: belongs to the program before it`, () => expect(blocks[index - 1]?.language).toBe('js'))
    } else if (language === 'console') {
      it(`line ${line}: prints what it says`, () => runConsole(block), slowMs)
    } else if (text.includes('process.argv')) {
      it(`line ${line}: is the worker of the example`, () => {
        expect(text).toBe(textOf('examples', 'thumbnails', 'worker.js'))
      })
    } else {
      it(`line ${line}: runs, prints what it says and ends by itself`, () => {
        expect(language).toBe('js')
        runProgram(block, next?.language === 'text' ? next.text : undefined)
      })
    }
  }
}

describe('README.md', () => {
  it('is short', () => {
    expect(readme.split('\n').length).toBeLessThan(200)
    expect(blocksOf(readme).length).toBeGreaterThanOrEqual(5)
  })

  runs(blocksOf(readme))

  it('names the two commands that package.json has', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
    expect(scripts).toMatchObject({ start: 'node examples/thumbnails/main.js', test: 'vitest run' })
    expect(readme).toContain('npm ci && npm test')
  })

  it('names the commands that there are', () => {
    const sentence = /and the commands ([^.]+)\./.exec(readme)?.[1] ?? ''
    const named = [...sentence.matchAll(/`(\w+)`/g)].map((match) => match[1])
    const listed = [...shell('piecework --help').output.matchAll(/^ {2}(\w+) .*/gm)].map((match) => match[1])
    expect(listed.filter((name) => name !== 'help').sort()).toEqual(named.sort())
  })
})

describe('docs/library.md', () => {
  const page = textOf('docs', 'library.md')
  runs(blocksOf(page))

  it('has every field of a policy with its default', () => {
    const [, table = ''] = /^## The policy of a queue\n([\s\S]*?)^## /m.exec(page) ?? []
    const rows = [...table.matchAll(/^\| `(\w+)` \| `?([^|`]+?)`? \|/gm)].map(([, name, text]) => [
      name,
      JSON.parse(text ?? ''),
    ])
    expect(Object.fromEntries(rows)).toEqual(policyDefaults)
  })

  it('has every option of enqueue() and of work()', () => {
    const report = textOf('docs', 'api-report.md')
    for (const name of ['TaskOptions', 'WorkerOptions']) {
      const [, fields = ''] = new RegExp(`interface ${name}(?:<[^{]*>)? \\{\n([\\s\\S]*?)^\\}`, 'm').exec(report) ?? []
      const options = [...fields.matchAll(/^ +(\w+)\?:/gm)].map((match) => match[1] as string)
      expect(options.length).toBeGreaterThan(4)
      for (const option of options) expect(page, `${name}.${option}`).toContain(`\`${option}\``)
    }
  })
})

it('docs/commands.md and docs/errors.md say what the product says', () => {
  const script = join(root, 'scripts', 'pages.js')
  const run = (...args: string[]) => spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  expect(run('--check')).toMatchObject({ status: 0, stderr: '' })
  const copy = join(folder, 'pages')
  mkdirSync(copy)
  expect(run(copy, '--check').stderr).toContain('commands.md differs')
  expect(run(copy).status).toBe(0)
  writeFileSync(join(copy, 'errors.md'), textOf('docs', 'errors.md').replace('## PW_BUSY', '## PW_LAZY'))
  expect(run(copy, '--check').stderr).toBe('errors.md differs from what the product says: run npm run pages\n')
})
