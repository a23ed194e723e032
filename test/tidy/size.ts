// Rules about size: lines, functions, files, the contract and the whole.
import ts from 'typescript'
import { eachNode, type File, type Finding, file, inFolders, isCode, lineCount, lineOf, type Rule } from './tree.js'

const ours = (f: File) => isCode(f) && inFolders(f, 'src', 'test', 'scripts', 'bench', 'examples')
const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0)
const lines = (count: number, line = '') => `${line}\n`.repeat(count)

const lineLength: Rule = {
  name: 'lines of code are at most 120 characters long',
  cure: 'break the line, or find a shorter way to say it',
  check: (files) =>
    files.filter(ours).flatMap((f) =>
      f.text.split('\n').flatMap((line, index): Finding[] => {
        const length = [...line].length
        return length > 120 ? [{ path: f.path, line: index + 1, found: `${length} characters` }] : []
      }),
    ),
  bad: [file('src/ground/a.ts', `// ${'x'.repeat(118)}`)],
  bites: 1,
  good: [file('src/ground/a.ts', `// ${'x'.repeat(117)}`), file('README.md', 'x'.repeat(500))],
}

const fileLength: Rule = {
  name: 'files of code have fewer than 400 lines',
  cure: 'look for the second idea in the file and give it a file of its own',
  check: (files) =>
    files
      .filter((f) => ours(f) && lineCount(f.text) >= 400)
      .map((f) => ({ path: f.path, found: `${lineCount(f.text)} lines` })),
  bad: [file('test/a.test.ts', lines(400))],
  bites: 1,
  good: [file('src/ground/a.ts', lines(399)), file('docs/a.md', lines(500))],
}

/** The callback of describe() is a chapter of a test, not a function that somebody must hold in mind. */
function isChapter(node: ts.Node): boolean {
  return ts.isCallExpression(node.parent) && /^describe\b/.test(node.parent.expression.getText())
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name) return node.name.getText()
  const { parent } = node
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText()
  if (ts.isCallExpression(parent)) return `a function given to ${parent.expression.getText().split('\n')[0]}`
  return ts.isConstructorDeclaration(node) ? 'constructor' : 'a function'
}

const functionLength: Rule = {
  name: 'functions have fewer than 60 lines',
  cure: 'give the steps names: split it where a comment would say "now"',
  check: (files) =>
    files.filter(ours).flatMap((f) => {
      const findings: Finding[] = []
      eachNode(f, (node) => {
        if (!ts.isFunctionLike(node) || !('body' in node) || !node.body || isChapter(node)) return
        const first = lineOf(f, node.getStart())
        const length = lineOf(f, node.end) - first + 1
        if (length >= 60) findings.push({ path: f.path, line: first, found: `${nameOf(node)}: ${length} lines` })
      })
      return findings
    }),
  bad: [file('src/ground/a.ts', `const f = () => {\n${lines(58, '  g()')}}\n`)],
  bites: 1,
  good: [
    file('src/ground/a.ts', `const f = () => {\n${lines(57, '  g()')}}\n`),
    file('test/a.test.ts', `describe('a', () => {\n${lines(80, "  it('b', () => {})")}})\n`),
  ],
}

const contractLength: Rule = {
  name: 'the engine contract is one page: fewer than 150 lines',
  cure: 'a new verb or noun has to earn its line: look for the one that already says it, and read the first ADR',
  check: (files) =>
    files
      .filter((f) => f.path === 'src/engine/contract.ts' && lineCount(f.text) >= 150)
      .map((f) => ({ path: f.path, found: `${lineCount(f.text)} lines` })),
  bad: [file('src/engine/contract.ts', lines(150))],
  bites: 1,
  good: [file('src/engine/contract.ts', lines(149))],
}

/** Lines that do something: what explains them, and the air between them, is not what makes a house too big. */
const codeLines = (text: string) => text.split('\n').filter((line) => !/^\s*(?:$|\/\/|\/?\*)/.test(line)).length

/** Lines of code each floor may have, about a tenth above what it had when that was set; why, says docs/adr/0009. */
const budgets: Readonly<Record<string, number>> = {
  ground: 830, // errors with their cures are half of it; a floor of tools grows into a drawer if nobody looks
  task: 980, // the life cycle, limits and retries are tables: a feature is a row; where JSON is wrong
  engine: 125, // one page, what wraps it, and what is done in a caller's transaction
  engines: 1350, // what all SQL stores decide alike: each line here is one less in two engines
  'engines/sqlite': 3350, // its own sync, locks and clock: a file has no server that does it
  'engines/postgres': 4150, // connections, fail-over and liveness over a network; statements that take arrays
  'engines/remote': 340, // names for calls, and how often each is sent again
  queue: 2750, // the library as programs see it: every option is checked and refused in words
  worker: 2250, // slots, leases, threads; the floor where time goes wrong
  insight: 230, // the figures of a status, sizing arithmetic
  server: 2550, // 60 routes with their shapes, and what keeps strangers from the machine's time
  cli: 4800, // thirty commands with their texts
  testing: 400, // without the chapters of the suite, which are tests that we ship
  'index.ts': 30,
}
const uncounted = ['src/server/dashboard', 'src/server/sqs', 'src/testing/chapters']

function floorOf(path: string): string {
  const [, floor = '', room = ''] = path.split('/')
  return floor === 'engines' && !room.endsWith('.ts') ? `engines/${room}` : floor
}

const floorSize: Rule = {
  name: `each floor of src keeps to its budget of lines of code, ${sum(Object.values(budgets))} in all`,
  cure: 'take something out before you put more in, or say in docs/adr/0009-size.md what the floor now costs and why',
  check: (files) => {
    const sizes = new Map<string, number>()
    for (const f of files) {
      if (!isCode(f) || !inFolders(f, 'src') || inFolders(f, ...uncounted)) continue
      sizes.set(floorOf(f.path), (sizes.get(floorOf(f.path)) ?? 0) + codeLines(f.text))
    }
    return [...sizes].flatMap(([floor, size]): Finding[] => {
      const budget = budgets[floor]
      if (budget === undefined) return [{ path: `src/${floor}`, found: 'has no budget' }]
      return size > budget ? [{ path: `src/${floor}`, found: `${size} lines, ${budget} allowed` }] : []
    })
  },
  bad: [
    file('src/task/a.ts', lines(800, 'a()')),
    file('src/task/b.ts', lines(201, '// b\nb()')),
    file('src/engines/mysql/a.ts', 'a()'),
  ],
  bites: 2,
  good: [
    file('src/task/a.ts', lines(500, '  a()\n\n  // a\n  /** b */')),
    file('src/engines/sqlite/a.ts', lines(900, 'a()')),
    file('src/engines/a.ts', lines(90, 'a()')),
    file('src/server/dashboard/a.ts', lines(300, 'a()')),
  ],
}

export const sizeRules = [lineLength, fileLength, functionLength, contractLength, floorSize]
