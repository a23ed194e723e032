// Rules about what is written beside the code: change log, licences, error codes, links, lockfile.
import { posix } from 'node:path'
import ts from 'typescript'
import {
  dependenciesOf,
  eachNode,
  type File,
  type Finding,
  file,
  inFolders,
  isCode,
  lineOf,
  manifestOf,
  type Rule,
} from './tree.js'

const textOf = (files: readonly File[], path: string) => files.find((f) => f.path === path)?.text ?? ''

const changeLog: Rule = {
  name: 'CHANGELOG.md has a chapter for the version in package.json',
  cure: 'write what a user can do now, and what they must change',
  check: (files) => {
    const { version } = manifestOf(files)
    const chapters = textOf(files, 'CHANGELOG.md')
      .split('\n')
      .filter((line) => line.startsWith('## '))
    return chapters.some((line) => line.split(' ')[1] === version)
      ? []
      : [{ path: 'CHANGELOG.md', found: `no ## ${version}` }]
  },
  bad: [file('package.json', '{ "version": "0.2.0" }'), file('CHANGELOG.md', '## 0.1.0\n')],
  bites: 1,
  good: [file('package.json', '{ "version": "0.2.0" }'), file('CHANGELOG.md', '## 0.2.0 (2026-01-01)\n## 0.1.0\n')],
}

/** Rows of the first table in a Markdown text, without head and rule, cells trimmed and without backticks. */
const rows = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
    .filter((cells) => !/^-+$/.test(cells[0] ?? ''))

const thirdParty: Rule = {
  name: 'THIRD_PARTY.md lists every dependency with the licence that its own manifest names',
  cure: 'add, correct or remove the row, and say in it what we need the package for',
  check: (files) => {
    const path = 'THIRD_PARTY.md'
    const listed = new Map(rows(textOf(files, path)).map(([name = '', licence, why]) => [name, { licence, why }]))
    const dependencies = dependenciesOf(files)
    const wrong = dependencies.flatMap((name): Finding[] => {
      const row = listed.get(name)
      const manifest = JSON.parse(textOf(files, `node_modules/${name}/package.json`) || '{}') as { license?: string }
      if (row === undefined) return [{ path, found: `${name} is missing` }]
      if (!row.why) return [{ path, found: `${name}: no reason given` }]
      return row.licence === manifest.license ? [] : [{ path, found: `${name} is under ${manifest.license}` }]
    })
    const gone = [...listed.keys()].filter((name) => !dependencies.includes(name))
    return [...wrong, ...gone.map((name) => ({ path, found: `${name} is no dependency` }))]
  },
  bad: [
    file('package.json', '{ "dependencies": { "a": "1", "b": "1" }, "devDependencies": { "c": "1" } }'),
    file('node_modules/a/package.json', '{ "license": "MIT" }'),
    file('node_modules/b/package.json', '{ "license": "GPL-3.0" }'),
    file(
      'THIRD_PARTY.md',
      '| name | licence | why |\n|---|---|---|\n| `a` | MIT | |\n| `b` | MIT | sums |\n| d | MIT | x |\n',
    ),
  ],
  bites: 4,
  good: [
    file('package.json', '{ "optionalDependencies": { "a": "1" } }'),
    file('node_modules/a/package.json', '{ "license": "MIT" }'),
    file('THIRD_PARTY.md', '| name | licence | why |\n|---|---|---|\n| `a` | MIT | sums |\n'),
  ],
}

/** The table is laid in several files, each below the size of one. */
const errorTables = [
  ...(['src/ground/errors.ts', 'src/ground/broker-codes.ts', 'src/ground/command-codes.ts'] as const),
  ...(['src/ground/schedule-codes.ts', 'src/ground/task-codes.ts', 'src/ground/transaction-codes.ts'] as const),
] as const
const [errorTable, brokerTable] = errorTables

/** Codes as property names (the table's rows) and as strings (uses) of one file. */
function codesIn(f: File) {
  const rows: Finding[] = []
  const uses: Finding[] = []
  eachNode(f, (node) => {
    const text = ts.isStringLiteralLike(node) || ts.isIdentifier(node) ? node.text : ''
    for (const [found] of text.matchAll(/\bPW_[A-Z0-9_]*[A-Z0-9]\b/g)) {
      const table = errorTables.some((path) => path === f.path)
      const isRow = table && ts.isPropertyAssignment(node.parent) && node.parent.name === node
      ;(isRow ? rows : uses).push({ path: f.path, line: lineOf(f, node.getStart()), found })
    }
  })
  return { rows, uses }
}

const errorCodes: Rule = {
  name: `the error codes that src uses and those of the table in ${errorTable} are the same`,
  cure: 'add the row with its meaning, why and cure, or take the row out: a code is a promise to those who handle it',
  check: (files) => {
    const found = files.filter((f) => isCode(f) && inFolders(f, 'src')).map(codesIn)
    const rows = found.flatMap((codes) => codes.rows)
    const uses = found.flatMap((codes) => codes.uses)
    const unknown = uses.filter((use) => !rows.some((row) => row.found === use.found))
    const unused = rows.filter((row) => !uses.some((use) => use.found === row.found))
    return [
      ...unknown.map((use) => ({ ...use, found: `${use.found} is not in the table` })),
      ...unused.map((row) => ({ ...row, found: `${row.found} is used nowhere` })),
    ]
  },
  bad: [
    file(errorTable, "export const table = { PW_A: { why: 'x' }, PW_B: { why: 'x' } }"),
    file(brokerTable, "export const table = { PW_D: { why: 'x' } }"),
    file('src/queue/a.ts', "throw fail('PW_B')\nthrow fail('PW_C')"),
  ],
  bites: 3,
  good: [file(errorTable, "export const table = { PW_A: { why: 'x' } }"), file('src/queue/a.ts', "throw fail('PW_A')")],
}

const links: Rule = {
  name: 'links between our pages lead somewhere',
  cure: 'correct the link, or write the page',
  check: (files) => {
    const known = new Set(
      files.flatMap(({ path }) => [path, ...path.split('/').map((_, i, parts) => parts.slice(0, i).join('/'))]),
    )
    return files
      .filter((f) => f.path.endsWith('.md'))
      .flatMap((f) =>
        [...f.text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)].flatMap((match): Finding[] => {
          const target = match[1] ?? ''
          if (/^[a-z]+:/.test(target)) return []
          const path = posix.join(posix.dirname(f.path), target).replace(/\/$/, '')
          return known.has(path) ? [] : [{ path: f.path, found: `link to ${target}` }]
        }),
      )
  },
  bad: [file('docs/a.md', '[b](b.md) and [c](../src/c.ts)'), file('src/c.ts', '')],
  bites: 1,
  good: [file('docs/a.md', '[b](b/) [web](https://example.com) [here](#x)'), file('docs/b/x.md', '[a](../a.md#part)')],
}

const lockfile: Rule = {
  name: 'package-lock.json names hashes, never the host of a registry',
  cure: 'install with the .npmrc of this repository in place (omit-lockfile-registry-resolved)',
  check: (files) =>
    files
      .filter((f) => f.path === 'package-lock.json' && /"resolved": "https?:/.test(f.text))
      .map(({ path }) => ({ path, found: '"resolved" with a host' })),
  bad: [file('package-lock.json', '{ "resolved": "https://registry.example/a.tgz" }')],
  bites: 1,
  good: [file('package-lock.json', '{ "integrity": "sha512-x" }')],
}

export const paperRules = [changeLog, thirdParty, errorCodes, links, lockfile]
