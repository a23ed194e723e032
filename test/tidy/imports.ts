// Rules about who may import whom, and which files anything leads to.
import { posix } from 'node:path'
import ts from 'typescript'
import { entryPoints, type File, type Finding, file, inFolders, isCode, parse, type Rule } from './tree.js'

/** The floors of the house, lowest first; a file imports from its own floor and those below. */
const floors = ['ground', 'task', 'engine', 'engines', 'queue', 'worker', 'insight', 'server', 'cli']
const top = ['testing', 'index.ts']

interface Import {
  readonly target: string
  readonly line: number
}

/** What a file imports or starts by a relative name: import, export from, import(), and `new URL('./x.js', …)`. */
function importsOf(f: File): Import[] {
  const { importedFiles } = ts.preProcessFile(f.text, true, true)
  const named = importedFiles.map(({ fileName, pos }) => ({ name: fileName, pos }))
  const started = [...f.text.matchAll(/new URL\(\s*'([^']+)',\s*import\.meta\.url/g)].map((match) => ({
    name: match[1] ?? '',
    pos: match.index,
  }))
  return [...named, ...started]
    .filter(({ name }) => name.startsWith('.'))
    .map(({ name, pos }) => ({
      target: posix.join(posix.dirname(f.path), name).replace(/\.js$/, '.ts'),
      line: parse(f).getLineAndCharacterOfPosition(pos).line + 1,
    }))
}

function floorOf(path: string): number {
  const room = path.split('/')[1] ?? ''
  return top.includes(room) ? floors.length : floors.indexOf(room)
}

const engineOf = (path: string) => /^src\/engines\/([^/]+)\//.exec(path)?.[1]

function objection(from: string, to: string): string | undefined {
  // The one file outside that the package ships: it knows the version.
  if (to === 'package.json') return undefined
  if (!to.startsWith('src/')) return `reaches out of src to ${to}`
  if (floorOf(to) > floorOf(from)) return `floor ${floorOf(from)} imports ${to} of floor ${floorOf(to)}`
  const [mine, theirs] = [engineOf(from), engineOf(to)]
  if (mine !== undefined && theirs !== undefined && mine !== theirs) return `engine ${mine} imports engine ${theirs}`
  return undefined
}

const importFloors: Rule = {
  name: `imports go downwards only: ${floors.join(' < ')} < testing, index`,
  cure: 'move the thing down to the floor that owns the idea, or hand it in as an argument from above',
  check: (files) =>
    files
      .filter((f) => isCode(f) && inFolders(f, 'src'))
      .flatMap((f): Finding[] => {
        if (floorOf(f.path) === -1) return [{ path: f.path, found: 'stands on no floor' }]
        return importsOf(f).flatMap(({ target, line }) => {
          const found = objection(f.path, target)
          return found === undefined ? [] : [{ path: f.path, line, found }]
        })
      }),
  bad: [
    file('src/task/a.ts', "import { b } from '../engines/sqlite/b.js'"),
    file('src/engines/sqlite/b.ts', "export { c } from '../postgres/c.js'"),
    file('src/queue/a.ts', "const x = await import('../cli/main.js')"),
    file('src/attic/a.ts', ''),
  ],
  bites: 4,
  good: [
    file('src/engines/sqlite/b.ts', "import { a } from '../../task/a.js'\nimport { c } from './c.js'"),
    file('src/index.ts', "export { d } from './queue/d.js'"),
  ],
}

const deadFiles: Rule = {
  name: 'every file of src is reached from an entry point of package.json',
  cure: 'delete the file, or use it: imported, or started as a thread or process with new URL(…, import.meta.url)',
  check: (files) => {
    const sources = new Map(files.filter((f) => inFolders(f, 'src') && isCode(f)).map((f) => [f.path, f]))
    const reached = new Set<string>()
    const visit = (path: string) => {
      const f = sources.get(path)
      if (f === undefined || reached.has(path)) return
      reached.add(path)
      for (const { target } of importsOf(f)) visit(target)
    }
    entryPoints(files).forEach(visit)
    return [...sources.keys()]
      .filter((path) => !reached.has(path))
      .map((path) => ({ path, found: 'nothing leads here' }))
  },
  bad: [
    file('package.json', '{ "exports": { ".": "./dist/index.js" } }'),
    file('src/index.ts', "export { a } from './queue/a.js'"),
    file('src/queue/a.ts', ''),
    file('src/queue/b.ts', ''),
  ],
  bites: 1,
  good: [
    file(
      'package.json',
      '{ "exports": { ".": { "default": "./dist/index.js" } }, "bin": { "x": "dist/cli/main.js" } }',
    ),
    file('src/index.ts', "export { a } from './queue/a.js'"),
    file('src/queue/a.ts', "fork(new URL('../worker/child.js', import.meta.url))"),
    file('src/worker/child.ts', ''),
    file('src/cli/main.ts', ''),
  ],
}

const barrels: Rule = {
  name: 'only the entry of an exported subpath re-exports',
  cure: 'import from the file where the thing lives',
  check: (files) => {
    const entries = entryPoints(files)
    return files
      .filter((f) => isCode(f) && inFolders(f, 'src') && !entries.includes(f.path))
      .flatMap((f): Finding[] => {
        if (posix.basename(f.path) === 'index.ts')
          return [{ path: f.path, found: 'an index.ts that no subpath exports' }]
        return parse(f)
          .statements.filter((node) => ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined)
          .map((node) => ({
            path: f.path,
            line: parse(f).getLineAndCharacterOfPosition(node.getStart()).line + 1,
            found: node.getText().split('\n')[0] ?? '',
          }))
      })
  },
  bad: [
    file('package.json', '{ "exports": { ".": "./dist/index.js" } }'),
    file('src/queue/index.ts', ''),
    file('src/queue/all.ts', "export * from './client.js'"),
  ],
  bites: 2,
  good: [
    file('package.json', '{ "exports": { ".": "./dist/index.js" } }'),
    file('src/index.ts', "export * from './queue/client.js'"),
    file('src/queue/client.ts', 'export const a = 1\nexport { a as b }'),
  ],
}

const builtCode: Rule = {
  name: 'tests import what was built',
  cure: "import from '../dist/…js' or from 'piecework': what we test is what we ship",
  check: (files) =>
    files
      .filter((f) => isCode(f) && inFolders(f, 'test', 'bench', 'examples'))
      .flatMap((f) =>
        importsOf(f)
          .filter(({ target }) => target.startsWith('src/'))
          .map(({ target, line }) => ({ path: f.path, line, found: target })),
      ),
  bad: [file('test/a.test.ts', "import { a } from '../src/queue/a.js'")],
  bites: 1,
  good: [file('test/a.test.ts', "import { a } from '../dist/queue/a.js'")],
}

export const importRules = [importFloors, deadFiles, barrels, builtCode]
