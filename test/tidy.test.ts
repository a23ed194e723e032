// Style as a test: every rule of the house holds for every file, and every rule is able to object.
import { expect, it } from 'vitest'
import { clockRules } from './tidy/clocks.js'
import { importRules } from './tidy/imports.js'
import { paperRules } from './tidy/papers.js'
import { sizeRules } from './tidy/size.js'
import { type Finding, readManifests, readTree } from './tidy/tree.js'
import { wordRules } from './tidy/words.js'

const ours = readTree()
const tree = [...ours, ...readManifests(ours)]
const rules = [...importRules, ...sizeRules, ...clockRules, ...wordRules, ...paperRules]

const list = (findings: readonly Finding[]) =>
  findings.map(({ path, line, found }) => `  ${path}${line === undefined ? '' : `:${line}`}  ${found}`).join('\n')

it('reads the tree, and only what git would keep', () => {
  const paths = ours.map((f) => f.path)
  expect(paths).toContain('src/ground/errors.ts')
  expect(paths).toContain('.ci/run')
  expect(paths.filter((path) => /node_modules|dist/.test(path))).toEqual([])
})

for (const { name, cure, check, bad, bites, good } of rules) {
  it(`holds: ${name}`, () => {
    const findings = check(tree)
    if (findings.length > 0) expect.fail(`\n${list(findings)}\n\nThe rule: ${name}.\nThe cure: ${cure}.`)
  })

  it(`can object: ${name}`, () => {
    const findings = check(bad)
    expect(findings, list(findings)).toHaveLength(bites)
    expect(list(check(good))).toBe('')
  })
}
