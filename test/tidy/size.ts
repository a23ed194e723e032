// Rules about size: lines, functions, files, the contract and the whole.
import ts from 'typescript'
import { eachNode, type File, type Finding, file, inFolders, isCode, lineCount, lineOf, type Rule } from './tree.js'

const ours = (f: File) => isCode(f) && inFolders(f, 'src', 'test', 'scripts', 'bench', 'examples')
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

const wholeSize: Rule = {
  name: 'src has at most 12 000 lines of code beside comments, not counting dashboard, SQS face and the shipped suite',
  cure: 'take something out before you put more in',
  check: (files) => {
    const counted = files.filter(
      (f) =>
        isCode(f) &&
        inFolders(f, 'src') &&
        !inFolders(f, 'src/server/dashboard', 'src/server/sqs', 'src/testing/chapters'),
    )
    const total = counted.reduce((sum, f) => sum + codeLines(f.text), 0)
    return total > 12_000 ? [{ path: 'src', found: `${total} lines` }] : []
  },
  bad: [file('src/queue/a.ts', lines(6000, 'a()')), file('src/queue/b.ts', lines(6001, '// b\nb()'))],
  bites: 1,
  good: [
    file('src/queue/a.ts', lines(12_000, '  a()\n\n  // a\n  /** b */')),
    file('src/server/dashboard/a.ts', lines(300, 'a()')),
  ],
}

export const sizeRules = [lineLength, fileLength, functionLength, contractLength, wholeSize]
