// Listeners that throw or reject: contained, reported, and no other listener misses its event.
import { expect, it, onTestFinished, vi } from 'vitest'
import { PieceworkError } from '../../dist/ground/errors.js'
import { Events } from '../../dist/worker/events.js'

const done = { id: '1', type: 'mail', number: 1, runMs: 0 }

function warnings(): Error[] {
  const heard: Error[] = []
  const listen = (warning: Error) => void heard.push(warning)
  process.on('warning', listen)
  onTestFinished(() => void process.off('warning', listen))
  return heard
}

it('a listener that throws becomes an error event, and the next listener is still called', () => {
  const events = new Events()
  const cause = new Error('mine')
  const errors: Error[] = []
  const second = vi.fn()
  events.on('error', (error) => errors.push(error))
  events.on('done', () => {
    throw cause
  })
  events.on('done', second)
  events.emit('done', done)
  expect(second).toHaveBeenCalledWith(done)
  expect(errors).toMatchObject([{ code: 'PW_STRAY_ERROR', cause, details: { event: 'done' } }])
})

it('a listener whose promise rejects becomes an error event too', async () => {
  const events = new Events()
  const heard = new Promise<Error>((resolve) => events.on('error', resolve))
  events.on('done', () => Promise.reject(new Error('later')))
  events.emit('done', done)
  expect(await heard).toMatchObject({ code: 'PW_STRAY_ERROR', cause: { message: 'later' } })
})

it('an error that nobody hears is a process warning, and so is an error listener that fails', async () => {
  const heard = warnings()
  const events = new Events()
  events.trouble(new PieceworkError('PW_BUSY', 'locked'))
  events.on('error', () => {
    throw new Error('even here')
  })
  events.trouble(new Error('x'))
  await new Promise((resolve) => process.nextTick(resolve))
  expect(heard).toMatchObject([
    { name: 'PieceworkWarning', message: 'locked', code: 'PW_BUSY' },
    { name: 'PieceworkWarning', code: 'PW_STRAY_ERROR' },
  ])
})

it('a listener taken off in the middle of an event still hears that event, and no later one', () => {
  const events = new Events()
  const second = vi.fn()
  events.on('done', () => events.off('done', second))
  events.on('done', second)
  events.emit('done', done)
  events.emit('done', done)
  expect(second).toHaveBeenCalledTimes(1)
  expect([events.heard('done'), events.heard('dead')]).toEqual([true, false])
})
