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
import { manualClock } from '../../dist/testing/manual-clock.js'

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
    const halting = new Halting(haltOf('soon,fail=50%'), 'soon,fail=50%')
    expect(halting.ended({ error: 'exit 1: no b.png\nat all', alike: 'exit 1: no 0\nat all' })).toBeNull()
    expect(halting.ended(null)).toBeNull()
    expect(halting.ended(null)).toBeNull()
    const why = '--halt soon,fail=50%: 2 of 4 deliveries failed, the last one with: exit 1: no c.png'
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
  /** A batch whose open tasks are a list; `look` turns the clock until the order has looked at it again. */
  const recorder = (open: string[] | null) => {
    const clock = manualClock()
    const after = async (id: string | null) => (open ?? []).filter((one) => Number(one) > Number(id ?? 0)).slice(0, 2)
    const order = new Order(clock, open && after)
    const written: string[] = []
    const given: string[] = []
    const put = async (id: string, signal = new AbortController().signal) => {
      if (!(await order.deliver(id, signal, async () => void written.push(id)))) given.push(id)
    }
    const look = () => clock.advance(100)
    return { order, written, given, put, look, end: (id: string) => open?.splice(open.indexOf(id), 1) }
  }

  it('writes one at a time as they come when nothing else was asked', async () => {
    const { order, written, put } = recorder(null)
    for (const id of ['1', '2']) order.begin(id)
    await Promise.all([put('2'), put('1')])
    expect(written).toEqual(['2', '1'])
  })

  it('keeps the order of the tasks, also over a delivery that failed, however many others wait', async () => {
    const ids = Array.from({ length: 300 }, (_, index) => String(index + 1))
    const { order, written, put } = recorder([...ids])
    for (const id of ids) order.begin(id)
    const rest = ids.slice(1).map((id) => put(id))
    order.away('1')
    order.begin('1')
    expect([written, order.count]).toEqual([[], 299])
    await Promise.all([...rest, put('1')])
    expect(written).toEqual(ids)
  })

  it('waits for what others hold, until it has ended there', async () => {
    const { order, written, put, look, end } = recorder(['1', '2', '3'])
    for (const id of ['2', '3']) order.begin(id)
    const rest = [put('3'), put('2')]
    await look()
    await look()
    expect(written).toEqual([])
    end('1')
    await look()
    await Promise.all(rest)
    expect(written).toEqual(['2', '3'])
  })

  it('waits for none that is dead, and writes what was sent on its way again although its turn is past', async () => {
    const { order, written, put } = recorder(['1', '2', '3', '4'])
    for (const id of ['1', '2', '3']) order.begin(id)
    const second = put('2')
    order.leave('1')
    await second
    order.begin('1')
    await put('1')
    expect(written).toEqual(['2', '1'])
  })

  it('gives back what has no turn any more: at the end of the run or its own delivery, or for a suspect', async () => {
    const { order, written, given, put } = recorder(['1', '2', '3', '4', '5'])
    for (const id of ['1', '3', '4', '5']) order.begin(id)
    const cut = new AbortController()
    const fifth = put('5', cut.signal)
    cut.abort()
    await fifth
    expect(given).toEqual(['5'])
    const fourth = put('4')
    order.hush(true)
    await fourth
    order.hush(false)
    expect(given).toEqual(['5', '4'])
    const third = put('3')
    order.close()
    const first = put('1')
    await Promise.all([first, third])
    expect([written, given, order.returned]).toEqual([['1'], ['5', '4', '3'], 2])
  })

  it('says when more wait, for others to start', async () => {
    const { order, put, look } = recorder(['1', '2'])
    let more = 0
    order.onMore(() => more++)
    order.begin('2')
    void put('2')
    await look()
    expect([more > 0, order.count]).toEqual([true, 1])
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
