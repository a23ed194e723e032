// A launcher whose run is gone ends quietly, and nothing that it had started outlives it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { room, until } from './cli.js'

const launcherFile = fileURLToPath(new URL('../../dist/cli/launcher.js', import.meta.url))

/** A launcher as a run starts it, with its stderr kept. */
function launch(): { launcher: ChildProcess; ended: Promise<{ code: number | null; stderr: string }> } {
  const launcher = fork(launcherFile, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  onTestFinished(() => void launcher.kill('SIGKILL'))
  const said = text(launcher.stderr as Readable)
  // Not 'close': Node never tells it to a parent that disconnects.
  return { launcher, ended: once(launcher, 'exit').then(async ([code]) => ({ code, stderr: await said })) }
}

it('that finds its run gone when it has started says nothing', async () => {
  const { launcher, ended } = launch()
  launcher.disconnect()
  expect(await ended).toEqual({ code: 0, stderr: '' })
})

it('ends a COMMAND that ignores TERM, also after another one has ended', async () => {
  const { launcher, ended } = launch()
  const { path, lines } = room()
  const pids: number[] = []
  onTestFinished(() => {
    for (const pid of pids.filter(alive)) process.kill(pid, 'SIGKILL')
  })
  const started = new Promise<void>((resolve) => {
    launcher.on('message', (answer: { is: string; pid: number }) => {
      if (answer.is === 'ready') {
        const call = { file: null, input: null, env: {} }
        const deaf = 'trap "" TERM; echo set > "$0"; exec sleep 60'
        // `exec` makes the shell the sleep itself: TERM ends the first at once, the second only hears KILL.
        launcher.send({ id: 1, do: 'start', call: { ...call, words: ['sh', '-c', 'exec sleep 60'] } })
        launcher.send({ id: 2, do: 'start', call: { ...call, words: ['sh', '-c', deaf, path('deaf')] } })
      }
      if (answer.is === 'started' && pids.push(answer.pid) === 2) resolve()
    })
  })
  await started
  await until('the trap to be set', () => lines('deaf').length === 1)
  launcher.disconnect()
  expect(await ended).toEqual({ code: 0, stderr: '' })
  expect(pids.filter(alive)).toEqual([])
}, 20_000)

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
