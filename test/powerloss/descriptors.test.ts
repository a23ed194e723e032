// Only SQLite opens the store's file: closing another descriptor of it would drop this process's locks without a word.
import fs, { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'

/** The paths that Node's own functions open until the test ends; they go on opening them. */
function openedPaths(): string[] {
  const paths: string[] = []
  const { open, openSync } = fs
  fs.openSync = (...args: Parameters<typeof openSync>) => {
    paths.push(String(args[0]))
    return openSync(...args)
  }
  fs.open = new Proxy(open, {
    apply(target, self, args) {
      paths.push(String(args[0]))
      return Reflect.apply(target, self, args)
    },
  })
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { open, openSync })
    syncBuiltinESMExports()
  })
  return paths
}

it('opens an existing store without a descriptor of its own, so that its locks stay', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'piecework-locks-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'work.db')
  const first = engineFor(`sqlite:${file}`)
  await first.open()
  const paths = openedPaths()
  const second = engineFor(`sqlite:${file}`)
  await second.open()
  await second.enqueue(null, [{ queue: 'q', payload: '1' }])
  await second.close()
  await first.close()
  // The log may be opened beside SQLite: its locks are on the index.
  expect(paths).toContain(`${file}-wal`)
  expect(paths).not.toContain(file)
})
