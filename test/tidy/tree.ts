// What a tidy rule is, and the tree of files it looks at.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** One text file; `path` is relative to the root of the repository, with `/`. */
export interface File {
  readonly path: string
  readonly text: string
}

/** Something a rule objects to; `line` counts from 1. */
export interface Finding {
  readonly path: string
  readonly line?: number
  readonly found: string
}

/** A rule of the house. `bad` is a small tree with `bites` things to object to, `good` one it must leave alone. */
export interface Rule {
  readonly name: string
  readonly cure: string
  readonly check: (files: readonly File[]) => Finding[]
  readonly bad: readonly File[]
  readonly bites: number
  readonly good: readonly File[]
}

export const file = (path: string, text: string): File => ({ path, text })

const root = fileURLToPath(new URL('../..', import.meta.url))
const readable =
  /(\.(ts|js|sh|py|json|md|sql|yml|svg|html|css)|^LICENSE|^\.(gitignore|gitattributes|editorconfig|npmrc|nvmrc)|^run)$/

/** Every text file of the repository that git would keep, by the few kinds of pattern our .gitignore uses. */
export function readTree(): File[] {
  const patterns = readFileSync(join(root, '.gitignore'), 'utf8').split('\n').filter(Boolean)
  const ignored = (path: string, name: string, folder: boolean) =>
    patterns.some((pattern) => {
      if (pattern.endsWith('/')) return folder && (`${name}/` === pattern || `${path}/` === pattern)
      return pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern
    })
  const walk = (folder: string): File[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = folder ? `${folder}/${entry.name}` : entry.name
      if (ignored(path, entry.name, entry.isDirectory())) return []
      if (entry.isDirectory()) return entry.name.startsWith('.') && entry.name !== '.ci' ? [] : walk(path)
      return readable.test(entry.name) ? [file(path, readFileSync(join(root, path), 'utf8'))] : []
    })
  return walk('')
}

/** The manifests of the packages we depend on, as files, so that a rule can compare what we say with what they say. */
export function readManifests(tree: readonly File[]): File[] {
  return dependenciesOf(tree).map((name) => {
    const path = `node_modules/${name}/package.json`
    return file(path, readFileSync(join(root, path), 'utf8'))
  })
}

export function dependenciesOf(tree: readonly File[]): string[] {
  const manifest = manifestOf(tree)
  return ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((field) =>
    Object.keys((manifest[field] as Record<string, string> | undefined) ?? {}),
  )
}

export function manifestOf(tree: readonly File[]): Record<string, unknown> {
  return JSON.parse(tree.find((f) => f.path === 'package.json')?.text ?? '{}') as Record<string, unknown>
}

/** The sources behind package.json's exports and bin: dist/x.js is made of src/x.ts. */
export function entryPoints(tree: readonly File[]): string[] {
  const targets: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value === 'string') targets.push(value.replace(/^\.\//, ''))
    else if (value !== null && typeof value === 'object') Object.values(value).forEach(collect)
  }
  const { exports, bin } = manifestOf(tree)
  collect([exports, bin])
  const sources = targets.filter((path) => /^dist\/.*(?<!\.d)\.[jt]s$/.test(path))
  return [...new Set(sources.map((path) => path.replace(/^dist\//, 'src/').replace(/\.js$/, '.ts')))]
}

export const isCode = (f: File) => /\.(ts|js)$/.test(f.path)
export const inFolders = (f: File, ...folders: string[]) => folders.some((folder) => f.path.startsWith(`${folder}/`))

/** Lines of text, not counting what follows the last line break. */
export const lineCount = (text: string) => text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

const parsed = new WeakMap<File, ts.SourceFile>()

export function parse(f: File): ts.SourceFile {
  let source = parsed.get(f)
  if (source === undefined) {
    source = ts.createSourceFile(f.path, f.text, ts.ScriptTarget.ES2022, true)
    parsed.set(f, source)
  }
  return source
}

/** Calls `visit` for every node of the file, outer ones first. */
export function eachNode(f: File, visit: (node: ts.Node) => void): void {
  const walk = (node: ts.Node) => {
    visit(node)
    ts.forEachChild(node, walk)
  }
  walk(parse(f))
}

export const lineOf = (f: File, position: number) => parse(f).getLineAndCharacterOfPosition(position).line + 1
