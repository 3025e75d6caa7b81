import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { compileConditions, languageOf, matches, readQuery } from './destination-rules.ts'

const SIGNS = '& = + % %zz %4 %41 %ff %EF%BB%BF %u0041 %25u %F0%9F%8C%B8 %C3 ü ? # ; %00 \ud800'
const query = fc
  .array(fc.oneof(fc.constantFrom(...SIGNS.split(' '), ' '), fc.string({ maxLength: 3 })), {
    maxLength: 40,
  })
  .map((parts) => parts.join(''))

test('a query is read as URLSearchParams reads it: the first value of each name', () => {
  fc.assert(
    fc.property(query, (text) => {
      const all = new URLSearchParams(text)
      fc.pre(all.size <= 32)
      const expected = [...new Set(all.keys())].map((name) => [name, all.get(name)])
      expect([...readQuery(text)]).toEqual(expected as [string, string][])
    }),
    { numRuns: 2000 },
  )
})

const KIBIBYTES = 2 * 1024

test.each([
  ['the 32nd parameter is read', `${'a&'.repeat(31)}v=2`, '2'],
  ['the 33rd is not', `${'a&'.repeat(32)}v=2`, undefined],
  ['empty ones do not count', `${'&'.repeat(100)}v=2`, '2'],
  ['a parameter that ends at 2 KiB is read', `${'x'.repeat(KIBIBYTES - 4)}&v=2`, '2'],
  ['one that ends behind is not read in part', `${'x'.repeat(KIBIBYTES - 4)}&v=23`, undefined],
  ['nor one that begins behind', `${'x'.repeat(KIBIBYTES)}&v=2`, undefined],
  ['what follows 2 KiB changes nothing before', `v=2&${'a&'.repeat(3750)}`, '2'],
])('of a long query, %s', (_, text, value) => {
  expect(readQuery(text).get('v')).toBe(value as string)
})

test.each([
  ['zh-CN', 'zh-Hans-CN', true],
  ['zh-TW', 'zh-Hant-TW', true],
  ['zh-TW', 'zh-Hans-CN', false],
  ['zh-Hant', 'zh-cmn-Hant-TW', true],
  ['zh-Hans-CN', 'zh-CN', false],
  ['en', 'en-GB', true],
  ['en-GB', 'en', false],
  ['en-GB', 'en-gb-oed', true],
  ['de-DE', 'de-Latn-DE-1996', true],
  ['de-DE', 'de-x-DE', false],
  ['de-DE', 'de-a-DE', false],
  ['de-DE', 'de-DE-x-goethe', true],
  ['de-DE', 'de-Deva', false],
  ['de', 'den', false],
  ['sr-Latn', 'sr-Cyrl-Latn', true],
  ['ca-ES', 'es-ES', false],
])('the language %s and a visitor with %s', (range, tag, isIncluded) => {
  const visitor = {
    os: undefined,
    device: undefined,
    languages: [languageOf(tag)],
    country: undefined,
    query: readQuery(''),
    now: 0,
    minuteOfWeek: () => undefined,
  }
  expect(matches(compileConditions({ language: [range] }), visitor)).toBe(isIncluded)
})
