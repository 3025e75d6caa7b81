import { expect, test } from 'bun:test'
import type { LinkRules } from '../links/destination.ts'
import { encodeExcluded } from '../links/link.ts'
import { stateOf } from './follow.ts'
import { withQuery } from './forwarded-query.ts'

const states: [name: string, rules: LinkRules, state: string][] = [
  ['no rule', {}, 'active'],
  ['paused', { paused: true, expires_at: 1 }, 'off'],
  ['a scheduled deletion', { delete_at: 2000, expires_at: 1 }, 'off'],
  ['a millisecond before the start', { starts_at: 1001 }, 'off'],
  ['at the start', { starts_at: 1000 }, 'active'],
  ['a millisecond before the end', { expires_at: 1001 }, 'active'],
  ['at the end', { expires_at: 1000 }, 'expired'],
  ['more hits left', { max_hits: 4 }, 'active'],
  ['no hit left', { max_hits: 3 }, 'expired'],
]
test.each(states)('%s', (_, rules, state) => {
  expect(stateOf(rules, 1000, 3) as string).toBe(state)
})

const queries: [location: string, query: string, result: string][] = [
  ['https://a.example/', '', 'https://a.example/'],
  ['https://a.example', 'x=1', 'https://a.example?x=1'],
  ['https://a.example/p?a=1#top', 'b=2', 'https://a.example/p?a=1&b=2#top'],
  ['https://a.example/p#top?a=1', 'b=2', 'https://a.example/p?b=2#top?a=1'],
  ['https://a.example/p?a=1&b=%20&c', 'b=2&b=3', 'https://a.example/p?a=1&c&b=2&b=3'],
  ['https://a.example/p?%61=1', 'a=2', 'https://a.example/p?a=2'],
  ['https://a.example/p?ab=1&c', 'a=2', 'https://a.example/p?ab=1&c&a=2'],
  ['https://a.example/p?b=1&a', 'a=2', 'https://a.example/p?b=1&a=2'],
  ['https://a.example/p?a&b=1', 'a=', 'https://a.example/p?b=1&a='],
  ['https://a.example/p?', 'a=2', 'https://a.example/p?a=2'],
  ['https://a.example/p?b=1&', 'a=2', 'https://a.example/p?b=1&a=2'],
  ['https://a.example/p?&a=1&&b=2&=3&c', '&b=4&&', 'https://a.example/p?a=1&=3&c&&b=4&&'],
  [
    'https://a.example/p?a=1&b+c=2&%zz=3',
    '?a=2&b%20c=4',
    'https://a.example/p?a=1&%zz=3&?a=2&b%20c=4',
  ],
  ['https://a.example/p?a=1?2#x#y?z', 'c=%2F', 'https://a.example/p?a=1?2&c=%2F#x#y?z'],
  ['https://a.example/', `"'<>#fragment`, 'https://a.example/?%22%27%3C%3E'],
  ['https://a.example/', '#fragment', 'https://a.example/'],
  ['https://a.example/?x=%7B', 'y={|}&z=\\^`', 'https://a.example/?x=%7B&y=%7B%7C%7D&z=%5C%5E%60'],
  ['https://a.example/', 'x'.repeat(4096), `https://a.example/?${'x'.repeat(4096)}`],
  ['https://a.example/', 'x'.repeat(4097), 'https://a.example/'],
]
test.each(queries)('%s with the query %s', (location, query, result) => {
  expect(withQuery(location, query)).toBe(result)
})

test('a query in any printable ASCII is forwarded as RFC 3986 writes it', () => {
  for (let unit = 0x21; unit < 0x7f; unit++) {
    const query = `a${String.fromCharCode(unit)}b=c`
    const { search } = new URL(`http://hop.test/SPRING26?${query}`)
    const written = encodeExcluded(search)
    expect(withQuery('https://a.example/', query)).toBe(`https://a.example/${written}`)
  }
})
