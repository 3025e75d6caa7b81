import { expect, test } from 'bun:test'
import { visitClassifier } from './classify.ts'
import { kindOf, visitValue } from './values.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'

function sourceOf(query: string): string {
  const classify = visitClassifier({ countries: undefined, countryHeader: undefined })
  const client = { keyHigh: 0xffff0001, keyLow: 1, isForwarded: false }
  const headers = new Map([['user-agent', FIREFOX]])
  const keys = classify({ linkId: 1, weight: 1, client, query, headers }) ?? []
  return keys.filter((key) => kindOf(key) === 'referrer').map(visitValue)[0] ?? ''
}

test.each(['x', 'Ⱥ', '€', '😀'])('a source of many %s has at most 64 bytes', (letter) => {
  const source = sourceOf(`utm_source=${encodeURIComponent(letter.repeat(200))}`)
  expect(source).toStartWith(letter.toLowerCase().repeat(10))
  expect(Buffer.byteLength(source)).toBeWithin(60, 65)
  expect(source).not.toContain('\uFFFD')
})

test('a source has no control, formatting or unpaired characters', () => {
  expect(sourceOf('ref=%20News%00%E2%80%AELetter%FF%20')).toBe('news letter')
})
