// The picture of the life cycle in docs/architecture.md is the one its table makes.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const script = fileURLToPath(new URL('../scripts/lifecycle-picture.js', import.meta.url))
const page = fileURLToPath(new URL('../docs/architecture.md', import.meta.url))
const run = (...args: string[]) => spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })

it('is up to date', () => {
  expect(run('--check')).toMatchObject({ status: 0, stderr: '' })
})

it('is missed when it differs, and made again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-picture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const copy = join(folder, 'architecture.md')
  writeFileSync(copy, readFileSync(page, 'utf8').replace('ready --> leased: claim', 'ready --> dead: claim'))
  expect(run(copy, '--check').status).toBe(1)
  expect(run(copy).status).toBe(0)
  expect(readFileSync(copy, 'utf8')).toBe(readFileSync(page, 'utf8'))
})

it('refuses a page that has no place for it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-picture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const copy = join(folder, 'licence.md')
  copyFileSync(fileURLToPath(new URL('../LICENSE', import.meta.url)), copy)
  expect(run(copy).status).toBe(2)
})
