// Where text stops being JSON is found at the character, and nothing that is JSON is called wrong.
import { describe, expect, it } from 'vitest'
import { jsonFault } from '../../dist/task/json-fault.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'

describe('the place where text is no JSON', () => {
  it.each([
    ['', 0, 'it ends too early'],
    ['  ', 2, 'it ends too early'],
    ['hello', 0, '"h" cannot stand there'],
    ['{"a":tru}', 8, '"}" cannot stand there'],
    ['{"a" 1}', 5, '"1" cannot stand there'],
    ['{"a":1,}', 7, '"}" cannot stand there'],
    ['[1 2]', 3, '"2" cannot stand there'],
    ['[1,', 3, 'it ends too early'],
    ['"abc', 4, 'it ends too early'],
    ['"a\nb"', 2, '"\\n" cannot stand there'],
    ['"\\x"', 1, '"\\\\" cannot stand there'],
    ['01', 1, '"1" cannot stand there'],
    ["{'a':1}", 1, '"\'" cannot stand there'],
    ['1 😀', 2, '"😀" cannot stand there'],
    ['null,', 4, '"," cannot stand there'],
  ])('%j', (text, offset, why) => {
    expect(jsonFault(text)).toEqual({ offset, why })
  })

  it('is found exactly when the parser refuses, and what stands before it is no reason', () => {
    const random = seededRandom(7)
    const whole = '{"a":[1,-2.5e+3,true,false,null,"x\\n\\u00e9é",{}],"b":{"c":[],"d":""}}'
    const letters = '{}[]:,"\\ \ntrufalsn0123-.eE😀'
    let refused = 0
    for (let round = 0; round < 3000; round++) {
      const at = Math.floor(random() * whole.length)
      const letter = letters[Math.floor(random() * letters.length)] ?? ''
      const text = whole.slice(0, at) + letter + whole.slice(at + Math.floor(random() * 3))
      const fault = jsonFault(text)
      const isJson = parses(text)
      expect([text, fault === null]).toEqual([text, isJson])
      if (!isJson) refused++
    }
    expect(refused).toBeGreaterThan(500)
  })
})

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
