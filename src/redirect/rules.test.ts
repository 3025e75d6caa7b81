import { expect, test } from 'bun:test'
import type { LinkRules } from '../links/rules.ts'
import { stateOf, withQuery } from './rules.ts'

const plain: LinkRules = {
  isOff: false,
  startsAt: null,
  expiresAt: null,
  maxHits: null,
  expiredLocation: null,
  forwardQuery: false,
  hits: 0,
}

const states: [name: string, rules: Partial<LinkRules>, state: string][] = [
  ['no rule', {}, 'active'],
  ['paused', { isOff: true, expiresAt: 1 }, 'off'],
  ['a millisecond before the start', { startsAt: 1001 }, 'off'],
  ['at the start', { startsAt: 1000 }, 'active'],
  ['a millisecond before the end', { expiresAt: 1001 }, 'active'],
  ['at the end', { expiresAt: 1000 }, 'expired'],
  ['one hit left', { maxHits: 3, hits: 2 }, 'active'],
  ['no hit left', { maxHits: 3, hits: 3 }, 'expired'],
]
test.each(states)('%s', (_, rules, state) => {
  expect(stateOf({ ...plain, ...rules }, 1000) as string).toBe(state)
})

const queries: [location: string, visit: string, result: string][] = [
  ['https://a.example/', '', 'https://a.example/'],
  ['https://a.example/', '?', 'https://a.example/'],
  ['https://a.example', '?x=1', 'https://a.example?x=1'],
  ['https://a.example/p?a=1#top', '?b=2', 'https://a.example/p?a=1&b=2#top'],
  ['https://a.example/p?a=1&b=%20&c', '?b=2&b=3', 'https://a.example/p?a=1&c&b=2&b=3'],
  ['https://a.example/p?%61=1', '?a=2', 'https://a.example/p?a=2'],
  ['https://a.example/p?&a=1&&b=2&=3&c', '?&b=4&&', 'https://a.example/p?a=1&=3&c&&b=4&&'],
  [
    'https://a.example/p?a=1&b+c=2&%zz=3',
    '??a=2&b%20c=4',
    'https://a.example/p?a=1&%zz=3&?a=2&b%20c=4',
  ],
  ['https://a.example/p?a=1?2#x#y?z', '?c=%2F', 'https://a.example/p?a=1?2&c=%2F#x#y?z'],
]
test.each(queries)('%s with the query %s', (location, visit, result) => {
  expect(withQuery(location, `http://hop.test/SPRING26${visit}`)).toBe(result)
})
