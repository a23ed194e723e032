// Items come out of any input as they went in, and a bad one is named by line and offset.
import { describe, expect, it } from 'vitest'
import { type Format, formatOf, type Item, ItemReader } from '../../dist/cli/items.js'
import type { PieceworkError } from '../../dist/ground/errors.js'

/** Reads the bytes cut into chunks of `size`, and answers the payloads and the error, if one came. */
function read(format: Format, bytes: string | Uint8Array, size = 1_000_000, skipInvalid = false) {
  const reader = new ItemReader(format, { skipInvalid })
  const items: Item[] = []
  const buffer = Buffer.from(bytes as string)
  try {
    for (let from = 0; from < buffer.length; from += size) reader.push(buffer.subarray(from, from + size), items)
    reader.end(items)
  } catch (error) {
    return { payloads: items.map((item) => item.payload), items, error: error as PieceworkError }
  }
  return { payloads: items.map((item) => item.payload), items, error: undefined }
}

const cases: [Format, string, unknown[]][] = [
  ['lines', 'a\nb\n', ['a', 'b']],
  ['lines', 'a\nlast without newline', ['a', 'last without newline']],
  ['lines', 'a\r\n\r\nb \r\n', ['a', 'b ']],
  ['lines', '\ufeffé\n\ufeff\n', ['é', '\ufeff']],
  ['lines', '', []],
  ['lines', '\n\n', []],
  ['lines', 'tab\there "quoted" \\ 日本\n', ['tab\there "quoted" \\ 日本']],
  ['null', 'a\nb\0\0c', ['a\nb', '', 'c']],
  ['null', '\ufeffa\0', ['\ufeffa']],
  ['ndjson', '{"a":1}\n\n [2] \r\n"x"', [{ a: 1 }, [2], 'x']],
  ['csv', 'a,b\r\n1,2\r\n', [{ a: '1', b: '2' }]],
  ['csv', '\ufeffa,b\n"x, ""y""\nz",\n', [{ a: 'x, "y"\nz', b: '' }]],
  ['csv', 'a,b\n1\n\n"",2', [{ a: '1' }, { a: '', b: '2' }]],
  ['csv', '"a ""b""",c.d\n1,2\n', [{ 'a "b"': '1', 'c.d': '2' }]],
  ['csv', '__proto__,1\nx,y\n', [JSON.parse('{"__proto__":"x","1":"y"}')]],
  ['tsv', 'a\tb\n"1"\t2\r\n', [{ a: '"1"', b: '2' }]],
]

describe('what is read', () => {
  it.each(cases.map((row, index) => [row[0], index, ...row] as const))('%s, case %i', (...row) => {
    const [, , format, text, expected] = row
    for (const size of [1, 2, 3, 7, 1_000_000]) {
      const { payloads, error } = read(format, text, size)
      expect(error).toBeUndefined()
      expect(payloads.map((payload) => JSON.parse(payload))).toEqual(expected)
    }
  })

  it('keeps NDJSON as it is written: big numbers, double keys, blanks', () => {
    const line = '{"id": 12345678901234567890, "a": 1, "a": 2, "x": 1.10}'
    expect(read('ndjson', `${line}\n`).payloads).toEqual([line])
  })
})

describe('what is refused', () => {
  const refusals: [Format, string | Uint8Array, string, number, number][] = [
    ['lines', Buffer.concat([Buffer.from('\ufffd\n'), Buffer.from([0x61, 0xc3, 0x28])]), 'PW_UTF8_INVALID', 2, 5],
    ['lines', Buffer.concat([Buffer.from('a\r\n\r\n'), Buffer.from([0xf0, 0x9f])]), 'PW_UTF8_INVALID', 3, 5],
    ['null', Buffer.from([0x61, 0, 0x62, 0xff, 0]), 'PW_UTF8_INVALID', 2, 3],
    ['ndjson', '1\n\n{"a":\n', 'PW_JSON_INVALID', 3, 3],
    ['ndjson', `1\n${'['.repeat(65)}${']'.repeat(65)}\n`, 'PW_PAYLOAD_TOO_DEEP', 2, 2],
    ['ndjson', `1\n"${'x'.repeat(1_048_576)}"\n`, 'PW_PAYLOAD_TOO_LARGE', 2, 2],
    ['lines', `a\n${'x'.repeat(1_048_577)}\n`, 'PW_PAYLOAD_TOO_LARGE', 2, 2],
    ['lines', `a\n${'x'.repeat(1_048_575)}\n`, 'PW_PAYLOAD_TOO_LARGE', 2, 2],
    ['csv', 'a,b\n1,"2\n3,4', 'PW_CSV_INVALID', 2, 4],
    ['csv', 'a,b\n"1"x,2\n', 'PW_CSV_INVALID', 2, 4],
    ['csv', 'a,b\n"1\n\n1",2\n1,2"\n', 'PW_CSV_INVALID', 5, 13],
    ['csv', 'a,b\n1,2,3\n', 'PW_CSV_INVALID', 2, 4],
    ['csv', 'a,b,a\n', 'PW_CSV_INVALID', 1, 0],
    ['tsv', 'a\tb\n1\t2\t3\n', 'PW_CSV_INVALID', 2, 4],
  ]

  it.each(refusals.map((row, index) => [row[0], index, ...row] as const))('%s, case %i', (...row) => {
    const [, , format, bytes, code, line, offset] = row
    for (const size of [1, 1_000_000]) {
      if (size === 1 && bytes.length > 100_000) continue
      const { error } = read(format, bytes, size)
      expect(error).toMatchObject({ code, details: { line, offset } })
      expect(error?.message).toContain(format === 'null' ? `Item ${line}` : `Line ${line}`)
    }
  })

  it('comes after the items before it', () => {
    expect(read('ndjson', '1\n2\n{\n4\n').payloads).toEqual(['1', '2'])
  })

  it('is kept in base64 and marked when asked to, and the rest is read on', () => {
    const bytes = Buffer.concat([Buffer.from('a\n'), Buffer.from([0x62, 0xff]), Buffer.from('\nc\n')])
    const { items, error } = read('lines', bytes, 3, true)
    expect(error).toBeUndefined()
    expect(items.map((item) => [item.payload, item.refused !== null])).toEqual([
      ['"a"', false],
      ['{"base64":"Yv8="}', true],
      ['"c"', false],
    ])
    expect(items[1]?.refused).toContain('offset 3')
  })

  it('cannot be skipped when it is the header, or has no end', () => {
    expect(read('csv', 'a,a\n1,2\n', 10, true).error).toMatchObject({ code: 'PW_CSV_INVALID' })
    expect(read('lines', 'x'.repeat(1_048_577), 65_536, true).error).toMatchObject({ code: 'PW_PAYLOAD_TOO_LARGE' })
  })
})

it('goes by the extension where no format is named', () => {
  const names = ['a.csv', 'A.CSV', 'b.tsv', 'c.ndjson', 'c.jsonl', 'd.txt', 'e', 'f.json']
  expect(names.map(formatOf)).toEqual(['csv', 'csv', 'tsv', 'ndjson', 'ndjson', 'lines', 'lines', 'lines'])
})
