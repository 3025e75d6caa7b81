import { expect, test } from 'bun:test'
import { withScheme } from '../links/url.ts'
import { findUrl, withoutInvisible } from './pasted.ts'

const URL = 'https://example.com/a'

const BEHIND = [
  '.',
  ',',
  ';',
  '!',
  '?',
  '…',
  ')',
  ']',
  '}',
  '>',
  '"',
  "'",
  '’',
  '”',
  '»',
  ').',
  '!!',
  ')…',
]
const CJK = [
  '，',
  '。',
  '」',
  '）',
  '、',
  '！',
  '？',
  '』',
  '】',
  '》',
  '，和其他',
  '。次の文',
  '」と言った',
]
test.each([...BEHIND, ...CJK])('a shared URL ends before %s', (sign) => {
  for (const before of ['', 'see ', '(see ', '「', 'Title: ']) {
    expect(findUrl(`${before}${URL}${sign}`)).toBe(URL)
    expect(findUrl(`${before}${URL}${sign} and more text)`)).toBe(URL)
  }
})

test.each([
  ['https://en.wikipedia.org/wiki/Foo_(bar)', 'https://en.wikipedia.org/wiki/Foo_(bar)'],
  ['(https://en.wikipedia.org/wiki/Foo_(bar)).', 'https://en.wikipedia.org/wiki/Foo_(bar)'],
  ['https://a.example/x[1]', 'https://a.example/x[1]'],
  ['[https://a.example/x[1]]', 'https://a.example/x[1]'],
  ['https://ja.wikipedia.org/wiki/日本を見る', 'https://ja.wikipedia.org/wiki/日本を見る'],
  ['HTTPS://EXAMPLE.com/?q=a,b;c&d=(e)#f!g', 'HTTPS://EXAMPLE.com/?q=a,b;c&d=(e)#f!g'],
  ['https://example.com/a/ https://example.com/b', 'https://example.com/a/'],
  ['https://example.com/a\u200b', URL],
])('the URL in %s', (text, url) => {
  expect(findUrl(text)).toBe(url)
})

test.each(['', 'no url', 'https://', '(https://)', 'ftp://example.com/'])(
  '%j has no URL',
  (text) => {
    expect(findUrl(text)).toBeUndefined()
  },
)

const INVISIBLE =
  '\u00ad \u200b \u200d \u200e \u200f \u202a \u202e \u2060 \u2066 \u2069 \ufeff'.split(' ')
test.each(INVISIBLE)('an invisible character at either end is removed: %j', (sign) => {
  for (const text of [`${sign}${URL}`, `${URL}${sign}`, ` ${sign}\t${URL}${sign}${sign} `]) {
    expect(withoutInvisible(text)).toBe(URL)
    expect(withScheme(text)).toBe(URL)
    expect(withScheme(text.replace('https://', ''))).toBe(URL)
  }
  expect(withoutInvisible(`a${sign}b`)).toBe(`a${sign}b`)
})
