// The small parts of the command line, each by itself: values, identities, halting, order, gate, progress.
import { describe, expect, it } from 'vitest'
import { Gate } from '../../dist/cli/gate.js'
import { Halting, haltOf } from '../../dist/cli/halt.js'
import { Identities } from '../../dist/cli/identity.js'
import { Order } from '../../dist/cli/order.js'
import { humanMs, oneLine } from '../../dist/cli/print.js'
import { barLine, textOf } from '../../dist/cli/progress.js'
import { jsonWith } from '../../dist/cli/raw.js'
import { choice, duration, pair, whole } from '../../dist/cli/values.js'
import { systemClock } from '../../dist/ground/clock.js'

const code = (name: string) => expect.objectContaining({ code: name })

describe('values of options', () => {
  it('are durations', () => {
    expect(['250ms', '30s', '5m', '1h', '1.5s', '0s'].map((text) => duration('--x', text))).toEqual([
      250, 30_000, 300_000, 3_600_000, 1500, 0,
    ])
    for (const text of ['', '5', '-5s', '5 s', '1w', 's', '1e3s', 'NaN']) {
      expect(() => duration('--x', text)).toThrow(code('PW_OPTION_INVALID'))
    }
    expect(() => duration('--lease', '30')).toThrow('Did you mean "30s"?')
  })

  it('are whole numbers, choices and pairs', () => {
    expect(whole('-j', '4', 1, 10)).toBe(4)
    for (const text of ['0', '11', '', '4.5', 'x', '0x4', '1e1']) {
      expect(() => whole('-j', text, 1, 10)).toThrow(code('PW_OPTION_INVALID'))
    }
    expect(() => choice('--format', 'csb', ['csv', 'tsv'])).toThrow('Did you mean "csv"?')
    expect(pair('--header', 'a=b=c')).toEqual(['a', 'b=c'])
    for (const text of ['a', '=b', '']) expect(() => pair('--header', text)).toThrow(code('PW_OPTION_INVALID'))
  })
})

describe('identities', () => {
  it('differ by bytes and by how often they came, not by their place', () => {
    const first = new Identities()
    const second = new Identities()
    const one = ['a', 'b', 'a', 'a', ''].map((text) => first.of(text))
    const two = ['a', 'a', '', 'b', 'a'].map((text) => second.of(text))
    expect(new Set(one).size).toBe(5)
    expect([...one].sort()).toEqual([...two].sort())
    expect(one[0]).toBe(two[0])
  })

  it('hold for many items', () => {
    const identities = new Identities()
    const seen = new Set<string>()
    for (let round = 0; round < 3; round++) for (let i = 0; i < 20_000; i++) seen.add(identities.of(`item ${i}`))
    expect(seen.size).toBe(60_000)
    expect(identities.of('item 5')).toMatch(/\.3$/)
  })
})

describe('halting', () => {
  const play = (rule: string | undefined, errors: (string | null)[]) => {
    const halting = new Halting(haltOf(rule))
    const at = errors.findIndex((error) => halting.ended(error === null ? null : { error, alike: error }) !== null)
    return at === -1 ? null : at + 1
  }
  const alike = Array.from({ length: 30 }, (_, index) => `exit 1: no room at /tmp/${index}`)

  it('by default: when the first 20 all failed alike', () => {
    expect(play(undefined, alike)).toBe(20)
    expect(play(undefined, [null, ...alike])).toBeNull()
    expect(play(undefined, [...alike.slice(0, 10), 'exit 2: other', ...alike])).toBeNull()
    expect(play('never', alike)).toBeNull()
  })

  it('by count and by share', () => {
    expect(play('soon,fail=3', [null, 'a', 'b', null, 'c'])).toBe(5)
    expect(play('now,fail=1', [null, null])).toBeNull()
    expect(play('soon,fail=50%', ['a', null, null, 'b', null, 'c'])).toBe(4)
    expect(new Halting(haltOf('now,fail=1')).ended({ error: 'x', alike: 'x' })?.when).toBe('now')
  })

  it('says by what error, with the item in it', () => {
    const halting = new Halting(haltOf('soon,fail=50%'))
    expect(halting.ended({ error: 'exit 1: no b.png\nat all', alike: 'exit 1: no 0\nat all' })).toBeNull()
    expect(halting.ended(null)).toBeNull()
    expect(halting.ended(null)).toBeNull()
    const why = '2 of 4 deliveries failed, the last one with: exit 1: no c.png'
    expect(halting.ended({ error: 'exit 1: no c.png', alike: 'exit 1: no 0' })).toEqual({ when: 'soon', why })
  })

  it.each(['', 'soon', 'soon,fail', 'soon,fail=0', 'later,fail=1', 'soon,fail=101%', 'fail=1'])(
    'refuses %j',
    (rule) => {
      expect(() => haltOf(rule)).toThrow(code('PW_OPTION_INVALID'))
    },
  )
})

describe('order', () => {
  const recorder = (heldMax: number) => {
    const order = new Order(heldMax)
    const written: string[] = []
    const put = (id: string) => order.deliver(id, async () => void written.push(id))
    return { order, written, put }
  }

  it('writes one at a time as they come when nothing else was asked', async () => {
    const { order, written, put } = recorder(0)
    for (const id of ['a', 'b']) order.begin(id, 1)
    await Promise.all([put('b'), put('a')])
    expect(written).toEqual(['b', 'a'])
  })

  it('keeps the order of numbers, also over a delivery that failed', async () => {
    const { order, written, put } = recorder(10)
    for (const [id, number] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4],
    ] as const)
      order.begin(id, number)
    const rest = [put('d'), put('c')]
    order.away('a')
    order.leave('b')
    order.begin('a', 1)
    await Promise.all([...rest, put('a')])
    expect(written).toEqual(['a', 'c', 'd'])
  })

  it('does not wait for ever for one that is away', async () => {
    const { order, written, put } = recorder(2)
    for (const [id, number] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const)
      order.begin(id, number)
    order.away('a')
    await Promise.all([put('c'), put('b')])
    expect(written).toEqual(['b', 'c'])
    order.begin('d', 4)
    order.begin('e', 5)
    order.away('d')
    const last = put('e')
    order.stop()
    await last
    expect(written).toEqual(['b', 'c', 'e'])
  })
})

it('lets so many in at once, and nobody once it is closed', async () => {
  const gate = new Gate(systemClock, 2, null)
  expect([await gate.enter(), await gate.enter()]).toEqual([true, true])
  const third = gate.enter()
  gate.leave()
  expect(await third).toBe(true)
  const fourth = gate.enter()
  gate.close()
  expect([await fourth, await gate.enter()]).toEqual([false, false])
})

describe('what people read', () => {
  const standing = { total: 1000, totalKnown: true, done: 400, dead: 2, cancelled: 0, retries: 3, running: 4 }

  it('is honest about what is not known', () => {
    expect(textOf(standing, 10)).toBe('400/1 000 done, 10.0/s, 59.8 s left, 4 running, 3 retries, 2 dead')
    expect(textOf({ ...standing, totalKnown: false }, 10)).toMatch(/^400\/at least 1 000 done, 10\.0\/s, 4 running/)
    expect(textOf(standing, null)).not.toContain('/s')
  })

  it('fits into the row of a terminal', () => {
    for (const columns of [20, 60, 80, 200]) expect(barLine(standing, 10, columns).length).toBeLessThan(columns)
    expect(barLine(standing, 10, 120)).toMatch(/^\[#{12}-{18}\] 400/)
  })

  it('shows durations in words and no control characters', () => {
    expect([420, 3210, 59_960, 250_000, 7_500_000].map(humanMs)).toEqual([
      '420 ms',
      '3.2 s',
      '1 min 0 s',
      '4 min 10 s',
      '2 h 5 min',
    ])
    expect(oneLine('a\u001b[31m\nb')).toBe('a [31m b')
  })
})

it('passes stored JSON on as it stands', () => {
  expect(jsonWith({ id: '1' }, 'payload', '{"n":12345678901234567890,\n "a":1.0}')).toBe(
    '{"id":"1","payload":{"n":12345678901234567890,  "a":1.0}}'.replace('  ', '  '),
  )
  expect(JSON.parse(jsonWith({}, 'payload', 'broken'))).toEqual({ payload: 'broken' })
})
