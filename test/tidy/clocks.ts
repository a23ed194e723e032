// Rules about time, chance and honest tests: what must come in from outside, and what a test must not do.
import ts from 'typescript'
import { eachNode, type Finding, file, inFolders, isCode, lineOf, type Rule } from './tree.js'

const timers = ['setTimeout', 'setInterval', 'setImmediate']
const members = [
  'Date.now',
  'Math.random',
  'process.hrtime',
  'performance.now',
  'AbortSignal.timeout',
  'crypto.randomUUID',
]
const modules = ['timers', 'timers/promises', 'node:timers', 'node:timers/promises']

/** What this node reads from the machine's clock, timers or chance, if anything. */
function ambient(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node)) {
    const name = node.getText().replace(/^globalThis\./, '')
    return members.includes(name) ? name : undefined
  }
  if (ts.isIdentifier(node) && timers.includes(node.text)) {
    const { parent } = node
    const isOwnName =
      ts.isPropertyAccessExpression(parent) && parent.name === node && parent.expression.getText() !== 'globalThis'
    const isKey = (ts.isPropertyAssignment(parent) || ts.isTypeElement(parent)) && parent.name === node
    return isOwnName || isKey ? undefined : node.text
  }
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && !node.arguments?.length) return 'new Date()'
  if (ts.isCallExpression(node) && node.expression.getText() === 'Date') return 'Date()'
  return ts.isStringLiteral(node) && modules.includes(node.text) ? node.text : undefined
}

const injectedClock: Rule = {
  name: 'only src/ground/clock.ts touches the clock, timers and chance of the machine',
  cure: 'take a Clock or a Random as an argument, so that a test can put its own in',
  check: (files) =>
    files
      .filter((f) => isCode(f) && inFolders(f, 'src') && f.path !== 'src/ground/clock.ts')
      .flatMap((f) => {
        const findings: Finding[] = []
        eachNode(f, (node) => {
          const found = ambient(node)
          if (found !== undefined) findings.push({ path: f.path, line: lineOf(f, node.getStart()), found })
        })
        return findings
      }),
  bad: [
    file('src/queue/a.ts', 'const a = Date.now()\nconst b = new Date()\nconst c = Math.random()\n'),
    file('src/queue/b.ts', 'setTimeout(f, 5)\nglobalThis.setInterval(f, 5)\nconst later = { setImmediate }\n'),
    file('src/queue/c.ts', 'const a = process.hrtime.bigint()\nconst b = performance.now()\nconst c = Date()\n'),
    file('src/queue/d.ts', "import { setTimeout as sleep } from 'node:timers/promises'\nAbortSignal.timeout(5)\n"),
  ],
  bites: 12,
  good: [
    file('src/ground/clock.ts', 'setTimeout(f, Date.now())'),
    file(
      'src/queue/a.ts',
      '// setTimeout is not used\nconst a = new Date(5)\nclock.after(5, f)\nsocket.setTimeout(0)\n',
    ),
    file('bench/a.ts', 'performance.now()'),
  ],
}

const excuses = ['skip', 'only', 'todo', 'fails', 'skipIf', 'runIf', 'retry']

const honestTests: Rule = {
  name: 'no test is skipped, singled out or expected to fail',
  cure: 'make it pass or take it out: a test that does not run says nothing, but looks as if it did',
  check: (files) =>
    files
      .filter((f) => isCode(f) && inFolders(f, 'test'))
      .flatMap((f) => {
        const findings: Finding[] = []
        eachNode(f, (node) => {
          if (!ts.isPropertyAccessExpression(node) || !excuses.includes(node.name.text)) return
          if (!/^(it|test|describe|suite)\b/.test(node.expression.getText())) return
          findings.push({ path: f.path, line: lineOf(f, node.getStart()), found: node.getText() })
        })
        return findings
      }),
  bad: [file('test/a.test.ts', "it.skip('a', f)\ndescribe.only('b', f)\nit.skipIf(slow)('c', f)\n")],
  bites: 3,
  good: [file('test/a.test.ts', "it('a', f)\nit.each([1])('b', f)\nlist.skip(3)\n")],
}

export const clockRules = [injectedClock, honestTests]
