// Words are filled from the item, wherever the braces stand, and nothing else in them is touched.
import { describe, expect, it } from 'vitest'
import { fieldText, itemText } from '../../dist/cli/fields.js'
import { quoted, template } from '../../dist/cli/placeholders.js'

const lines = (words: string[], text: string, number = 7) =>
  template(words, { fields: false }).fill({ text, json: null, number })
const fields = (words: string[], json: string) =>
  template(words, { fields: true }).fill({ text: itemText(json), json, number: 7 })

describe('an item of lines', () => {
  it.each([
    ['{}', 'a/b.tar.gz', 'a/b.tar.gz'],
    ['{.}', 'a/b.tar.gz', 'a/b.tar'],
    ['{/}', 'a/b.tar.gz', 'b.tar.gz'],
    ['{//}', 'a/b.tar.gz', 'a'],
    ['{/.}', 'a/b.tar.gz', 'b.tar'],
    ['{#}', 'a', '7'],
    ['{.}', 'a.b/c', 'a.b/c'],
    ['{.}', '.bashrc', '.bashrc'],
    ['{//}', 'plain', '.'],
    ['x{}y{}z', '-', 'x-y-z'],
    ['--out={/.}.png', 'd/e.jpg', '--out=e.png'],
    ['{a} {1} {print $1} {', 'x', '{a} {1} {print $1} {'],
    ['{}', '$(rm -rf) {} {/}', '$(rm -rf) {} {/}'],
    ['{}', '$&', '$&'],
  ])('%s of %s is %s', (word, item, expected) => {
    expect(lines([word], item)).toEqual([expected])
  })

  it('knows whether it was placed, and in the first word', () => {
    expect(template(['echo', 'x'], { fields: false })).toMatchObject({ placed: false, variable: false })
    expect(template(['echo', '{#}'], { fields: false })).toMatchObject({ placed: true, variable: false })
    expect(template(['./{}'], { fields: false })).toMatchObject({ placed: true, variable: true })
    expect(template(['echo', '{name}'], { fields: false }).placed).toBe(false)
  })

  it('takes another text for {} alone', () => {
    const made = template(['@', '{}', 'a@b', '{/}'], { replace: '@', fields: false })
    expect(made.fill({ text: 'd/e', json: null, number: 1 })).toEqual(['d/e', '{}', 'ad/eb', 'e'])
    const regular = template(['.*', 'a.*b'], { replace: '.*', fields: false })
    expect(regular.fill({ text: 'x', json: null, number: 1 })).toEqual(['x', 'axb'])
    const dashed = template(['a--b/'], { replace: '--', fields: true })
    expect(dashed.fill({ text: 'x', json: null, number: 1 })).toEqual(['axb/'])
  })
})

describe('fields of an item', () => {
  const json =
    '{"id": 12345678901234567890, "name":"A \\"B\\"", "a": {"b": {"c":[1, 2]}, "x":null}, "a.b":"flat", "é":true}'

  it.each([
    ['{id}', '12345678901234567890'],
    ['{name}', 'A "B"'],
    ['{a.x}', 'null'],
    ['{a.b}', 'flat'],
    ['{a.b.c}', '[1, 2]'],
    ['{é}', 'true'],
    ['{a}', '{"b": {"c":[1, 2]}, "x":null}'],
    ['<{id}|{#}>', '<12345678901234567890|7>'],
    ['{2} {1,3} {print $1} {}', `{2} {1,3} {print $1} ${json}`],
  ])('%s', (word, expected) => {
    expect(fields([word], json)).toEqual([expected])
  })

  it('are missing by name', () => {
    expect(() => fields(['{nope}'], json)).toThrow(expect.objectContaining({ code: 'PW_FIELD_MISSING' }))
    expect(() => fields(['{a.nope}'], json)).toThrow(expect.objectContaining({ code: 'PW_FIELD_MISSING' }))
    for (const item of ['1', '"text"', 'null', '[{"a":1}]', '{}']) expect(fieldText(item, 'a')).toBeNull()
  })

  it('are found whatever stands around them', () => {
    const tricky = ' { "x" : "}\\",{[" , "a\\u0062" : -1.5e3 , "y":{"ab":[{"z":"]"}]},"ab":  " \\u00e9\\n" } '
    expect(fieldText(tricky, 'ab')).toBe(' é\n')
    expect(fieldText(tricky, 'x')).toBe('}",{[')
    expect(fieldText(tricky, 'y')).toBe('{"ab":[{"z":"]"}]}')
    expect(fieldText('{"n":-1.5e3}', 'n')).toBe('-1.5e3')
    expect(fieldText('{"n": 7 , "m":8 }', 'n')).toBe('7')
    expect(fieldText('{"n": 7 , "m":8 }', 'm')).toBe('8')
  })

  it('of a JSON string: the item is its value', () => {
    expect(fields(['{}', '{/.}'], '"d/e f.png"')).toEqual(['d/e f.png', 'e f'])
  })
})

it('quotes words for a shell', () => {
  expect(quoted(['echo', 'a b', "it's", '', 'a=b', '$x', 'é'])).toBe(`echo 'a b' 'it'\\''s' '' a=b '$x' 'é'`)
})
