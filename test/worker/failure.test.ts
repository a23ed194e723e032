// The text that is kept of an error: how much of it, and that nothing makes reading it throw.
import { describe, expect, it } from 'vitest'
import { Retry } from '../../dist/task/handler.js'
import { errorText, isDefinite, verdictOf } from '../../dist/worker/failure.js'

const textOfLength = (letter: string, count: number) => Object.assign(new Error(), { stack: letter.repeat(count) })

describe('errorText', () => {
  it.each([
    ['a', 4096, 4096],
    ['a', 5000, 4096],
    ['é', 3000, 2048],
    ['語', 3000, 1365],
    ['🦊', 2000, 1024],
  ])('cuts %s x %i to whole characters within 4096 bytes', (letter, count, kept) => {
    const { text } = errorText(textOfLength(letter, count))
    expect(text).toBe(letter.repeat(kept))
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096)
  })

  it('does not leave half a surrogate pair at the cut', () => {
    const { text } = errorText(textOfLength('x', 4095).stack + '🦊'.repeat(10))
    expect(text.isWellFormed()).toBe(true)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096)
    expect(text.startsWith('x'.repeat(4093))).toBe(true)
  })

  it('takes the first code and all texts of the chain of causes, however it is made', () => {
    const root = Object.assign(new Error('root'), { code: 'E_ROOT' })
    const { code, text } = errorText(new Error('top', { cause: new Error('middle', { cause: root }) }))
    expect(code).toBe('E_ROOT')
    expect(text.match(/Error: (top|middle|root)/g)).toEqual(['Error: top', 'Error: middle', 'Error: root'])
    const circle = new Error('circle')
    circle.cause = circle
    expect(errorText(circle).text.match(/Error: circle/g)).toHaveLength(1)
  })

  it.each([[42], [''], [null], ['x'.repeat(201)]])('a code %j is none', (code) => {
    expect(errorText(Object.assign(new Error('x'), { code })).code).toBeNull()
  })

  it('a code with a lone surrogate is made well-formed', () => {
    expect(errorText(Object.assign(new Error('x'), { code: 'E\ud800' })).code).toBe('E\ufffd')
  })
})

describe('verdictOf', () => {
  it.each([[Number.NaN], [-1], ['5'], [undefined], [null]])('a delay of %j is as good as none', (delayMs) => {
    const verdict = verdictOf('r', Object.assign(new Retry(), { delayMs }))
    expect(verdict).toMatchObject({ do: 'retry', delayMs: undefined })
  })

  it('a delay without end becomes a year', () => {
    expect(verdictOf('r', new Retry({ delayMs: Number.POSITIVE_INFINITY }))).toMatchObject({ delayMs: 31_536_000_000 })
  })

  it('an error that only has the name of a decision is none', () => {
    const named = Object.assign(new Error('x'), { name: 'Release' })
    expect(verdictOf('r', named).do).toBe('retry')
    expect(verdictOf('r', { name: 'Bury', message: 'x', delayMs: 1 }).do).toBe('retry')
    expect([named, new Retry(), null].map(isDefinite)).toEqual([false, false, false])
  })
})
