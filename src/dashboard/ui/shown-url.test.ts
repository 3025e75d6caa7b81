import { expect, test } from 'bun:test'
import { markMatch, shownUrl } from './shown-url.ts'

const textOf = (url: string) => {
  const { start, host, rest } = shownUrl(url)
  return start + host + rest
}

test.each([
  'https://example.com/',
  'https://example.com',
  'HTTPS://Example.com:8443/a?b=c&d=%20#e',
  'http://ann:secret@example.com/@x',
  `https://example.com/${'a'.repeat(180)}`,
])('%s is shown as it is', (url) => {
  expect(textOf(url)).toBe(url)
  expect(shownUrl(url).isWhole).toBe(true)
})

test.each([
  ['https://例え.jp/道?q=水', 'https://例え.jp/道?q=水', '例え.jp'],
  ['https://xn--r8jz45g.jp/%E9%81%93?q=%e6%b0%b4', 'https://例え.jp/道?q=水', '例え.jp'],
  ['https://x.example/%20%2F%3F%23', 'https://x.example/%20%2F%3F%23', 'x.example'],
  ['https://x.example/a\u202efdp.exe', 'https://x.example/a%E2%80%AEfdp.exe', 'x.example'],
  ['https://x.example/%E2%81%84b%EF%BC%8Fc', 'https://x.example/%E2%81%84b%EF%BC%8Fc', 'x.example'],
  ['https://x.example/%E9%81', 'https://x.example/%E9%81', 'x.example'],
  ['https:////evil.example/x', 'https:////evil.example/x', 'evil.example'],
  ['https:\\\\evil.example\\x', 'https:\\\\evil.example\\x', 'evil.example'],
  ['https://bank.example@evil.example', 'https://bank.example@evil.example', 'evil.example'],
  ['https://a@b@evil.example/', 'https://a@b@evil.example/', 'evil.example'],
])('%s is shown as %s, on the host %s', (url, text, host) => {
  expect(textOf(url)).toBe(text)
  expect(shownUrl(url)).toMatchObject({ host, isWhole: true })
})

test.each([
  ['a long path', `https://example.com/${'a'.repeat(8000)}`, /^https:\/\/example.com\/a{180}…$/],
  [
    'a path of Chinese letters',
    `https://example.com/${'水'.repeat(8000)}`,
    /^https:\/\/example.com\/水{180}…$/,
  ],
  ['ampersands', `https://example.com/?${'&'.repeat(190)}`, /^https:\/\/example.com\/\?&{179}…$/],
  ['a long user', `https://${'u'.repeat(8000)}@evil.example/`, /^https:\/\/u{30}…@evil.example\/$/],
  ['a long host', `https://${'h'.repeat(8000)}.evil.example`, /^https:\/\/…h+\.evil.example$/],
  ['a long host of emoji', `https://${'🦆'.repeat(4000)}.evil.example`, /%86\.evil.example$/],
  ['a long scheme', `https:${'/'.repeat(8000)}evil.example/`, /^https:\/+evil.example\/$/],
])('%s is cut, and the end of the host stays', (_, url, shape) => {
  const shown = textOf(url)
  expect(shown).toMatch(shape)
  expect(shown.length).toBeLessThanOrEqual(202)
  expect(shownUrl(url).isWhole).toBe(false)
})

test('an emoji that is cut in two is no error', () => {
  for (let i = 0; i < 12; i++) {
    const shown = textOf(`https://x.example/${'a'.repeat(170 + i)}${'🦆'.repeat(3000)}`)
    expect(shown).toMatch(/^https:\/\/x\.example\/a*🦆*…$/u)
    expect(shown.isWellFormed()).toBe(true)
  }
})

test.each([
  ['spring', `https://example.com/${'a/'.repeat(200)}?from=spring`, '/…a/?from=spring'],
  ['SPRING', `https://example.com/${'a/'.repeat(200)}spring/b`, '/…a/a/a/a/spring/b'],
  ['水', `https://example.com/${'a/'.repeat(200)}水/b`, '/…a/a/a/a/水/b'],
  ['spring', 'https://example.com/spring/a', '/spring/a'],
  ['example', 'https://example.com/a', '/a'],
  ['', 'https://example.com/a', '/a'],
])('a search for “%s” cuts %s in front of the match', (search, url, rest) => {
  expect(shownUrl(url, search)).toMatchObject({ host: 'example.com', rest })
})

test('a match is marked in the parts that contain it, and markup is escaped', () => {
  const marked = (search: string) =>
    markMatch(['https://', 'example.com', '/a?<b>'], search).map(String)
  expect(marked('example')).toEqual(['https://', '<mark>example</mark>.com', '/a?&lt;b&gt;'])
  expect(marked('COM/A')).toEqual([
    'https://',
    'example.<mark>com</mark>',
    '<mark>/a</mark>?&lt;b&gt;',
  ])
  expect(marked('<b')).toEqual(['https://', 'example.com', '/a?<mark>&lt;b</mark>&gt;'])
  for (const search of ['none', '']) {
    expect(marked(search)).toEqual(['https://', 'example.com', '/a?&lt;b&gt;'])
  }
})
