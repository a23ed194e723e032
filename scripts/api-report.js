// Writes docs/api-report.md: every public export with its signature; with --check it only compares.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const reportPath = join(root, 'docs', 'api-report.md')
const exportsMax = 40

const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const subpaths = Object.entries(exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([subpath, target]) => ({ title: subpath.replace(/^\./, name), path: join(root, target.types) }))

const missing = subpaths.filter(({ path }) => !existsSync(path))
if (missing.length > 0) {
  console.error(`not built: ${missing.map(({ path }) => relative(root, path)).join(', ')}; run npm run build first`)
  process.exit(2)
}

const config = ts.getParsedCommandLineOfConfigFile(
  join(root, 'tsconfig.json'),
  {},
  {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => console.error(diagnostic.messageText),
  },
)
const program = ts.createProgram(
  subpaths.map(({ path }) => path),
  config?.options ?? {},
)
const checker = program.getTypeChecker()
const printer = ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed })

const resolve = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)
const isOurs = (node) => relative(join(root, 'dist'), node.getSourceFile().fileName).startsWith('..') === false
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)

/** The whole statement for a `const`, whose own node is only its right half. */
const statementOf = (node) => (ts.isVariableDeclaration(node) ? node.parent.parent : node)

/** `keyof typeof table` says nothing to a reader: its members do. */
function members(node) {
  const isKeys = ts.isTypeAliasDeclaration(node) && ts.isTypeOperatorNode(node.type)
  const type = isKeys ? checker.getTypeAtLocation(node.type) : undefined
  return type?.isUnion() ? type.types.map((member) => `    | ${checker.typeToString(member)}`).sort() : undefined
}

function signature(symbol) {
  const [first] = symbol.declarations
  const union = members(first)
  if (union !== undefined) return `type ${symbol.name} =\n${union.join('\n')};`
  return symbol.declarations
    .map((node) => printer.printNode(ts.EmitHint.Unspecified, statementOf(node), node.getSourceFile()))
    .map((text) => text.replace(/^(export )?(default )?(declare )?/, ''))
    .join('\n')
}

/** Our own declarations that the given ones mention and that nobody can import by name: they change the API as well. */
function mentioned(symbols) {
  const found = new Set()
  const walk = (node) => {
    if (ts.isTypeQueryNode(node)) return // The value itself is not visible, only what its type says.
    if (ts.isIdentifier(node)) {
      const symbol = checker.getSymbolAtLocation(node)
      const target = symbol && resolve(symbol)
      const declaration = target?.declarations?.[0]
      const isTopLevel = declaration !== undefined && ts.isSourceFile(statementOf(declaration).parent)
      if (isTopLevel && isOurs(declaration) && !symbols.has(target) && !found.has(target)) {
        found.add(target)
        target.declarations.forEach(walk)
      }
    }
    ts.forEachChild(node, walk)
  }
  for (const symbol of symbols) symbol.declarations.forEach(walk)
  return [...found].sort(byName)
}

const exported = new Set()
const chapters = subpaths.map(({ title, path }) => {
  const source = program.getSourceFile(path)
  const module = source && checker.getSymbolAtLocation(source)
  if (module === undefined) throw new Error(`${relative(root, path)} exports nothing`)
  const symbols = checker.getExportsOfModule(module).sort(byName)
  const entries = symbols.map((symbol) => {
    exported.add(resolve(symbol))
    return `### ${symbol.name}\n\n\`\`\`ts\n${signature(resolve(symbol))}\n\`\`\`\n`
  })
  return `## ${title}: ${symbols.length} exports\n\n${entries.join('\n')}`
})
const behind = mentioned(exported).map((symbol) => signature(symbol))
const report = `# The public API

Made by \`npm run api\` from what was built; a change of it is read in review.
${exported.size} exports of at most ${exportsMax}.

${chapters.join('\n')}
## Named by these, not exported

\`\`\`ts
${behind.join('\n\n')}
\`\`\`
`

if (exported.size > exportsMax) {
  console.error(`${exported.size} public exports, at most ${exportsMax}: keep one in, or take another out`)
  process.exitCode = 1
}
if (!process.argv.includes('--check')) {
  mkdirSync(join(root, 'docs'), { recursive: true })
  writeFileSync(reportPath, report)
} else if (!existsSync(reportPath) || readFileSync(reportPath, 'utf8') !== report) {
  console.error('the public API differs from docs/api-report.md: run npm run api and read the difference')
  process.exitCode = 1
}
