// The one-file examples run as they stand there and print what their last comment says, in whatever order.
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../examples/', import.meta.url))
const files = readdirSync(folder).filter((name) => name.endsWith('.js'))
const sorted = (text: string) => text.trim().split('\n').sort()

it('there are some', () => {
  expect(files.length).toBeGreaterThan(0)
})

it.each(files)('%s', { timeout: 120_000 }, async (name) => {
  const [, promised] = /\/\* prints:\n([\s\S]*?)\*\/\s*$/.exec(readFileSync(folder + name, 'utf8')) ?? []
  const { stdout, stderr } = await run(process.execPath, [folder + name], { timeout: 100_000 })
  expect(stderr).toBe('')
  // Workers that do several things at once promise no order.
  expect(sorted(stdout)).toEqual(sorted(promised ?? ''))
})
