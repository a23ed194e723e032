// When results cannot be written the error says what the command has done, so that nobody does it a second time.
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { mainFile, type Room, room } from './cli.js'

/** Runs it with a full disk as its standard output. */
function toFull(here: Room, ...words: string[]) {
  const shell = 'exec "$0" "$@" > /dev/full'
  const { PIECEWORK_URL: _, ...env } = process.env
  const { status, stderr } = spawnSync('sh', ['-c', shell, process.execPath, mainFile, ...words], {
    cwd: here.folder,
    env,
    encoding: 'utf8',
    input: '1\n2\n',
  })
  return { code: status, stderr }
}

describe('on a full disk', () => {
  it('enqueue names the ids of what it stored, or how many', async () => {
    const here = room()
    const some = toFull(here, 'enqueue', 'q', '1', '2')
    const ids = (await here.run(['task', 'list', '--json'])).json().map(({ id }) => id)
    expect([some.code, some.stderr]).toEqual([
      4,
      expect.stringContaining(`It did its work all the same: 2 tasks stored, ${ids.join(' ')}.`),
    ])
    expect(some.stderr).toContain('PW_RESULTS_UNWRITTEN')
    expect(some.stderr).not.toContain('un the same command again')
    expect(toFull(here, 'enqueue', 'q', '--input', '-').stderr).toContain('2 stored, 0 duplicates')
    const json = JSON.parse(toFull(here, 'enqueue', 'q', '3', '--json').stderr).error
    expect(json).toMatchObject({ code: 'PW_RESULTS_UNWRITTEN', message: expect.stringContaining('1 task stored') })
  }, 60_000)

  it('every command that changes something says what it changed, the others that nothing was', async () => {
    const here = room()
    await here.run(['enqueue', 'q', '1', '2', '3', '4', '--batch', 'b'])
    for (const [words, done] of [
      ['queue set q lease=1m', 'the policy is set'],
      ['queue unset q lease', 'the policy is unset'],
      ['queue pause q', 'q is paused'],
      ['queue resume q', 'q is resumed'],
      ['queue move q --to r', '4 moved'],
      ['queue purge r --all --yes', '4 purged'],
      ['task cancel q --all --yes', '0 cancelled'],
      ['dead redrive q --all --yes', '0 redriven'],
      ['dead discard q --all --yes', '0 discarded'],
      ['migrate', 'migrated in 0 steps'],
      ['token create ada', 'token revoke'],
      ['batch forget b --yes', 'b is forgotten'],
      ['status', 'Nothing was changed'],
      ['queue list', 'Nothing was changed'],
    ] as const) {
      const { code, stderr } = toFull(here, ...words.split(' '))
      expect([words, code, stderr]).toEqual([words, 4, expect.stringContaining(done)])
    }
  }, 120_000)
})
