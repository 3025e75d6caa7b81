import { expect, test } from 'bun:test'
import { locationOf, parseKnownUrl } from './link.ts'
import { Url, urlKey, withScheme } from './url.ts'

const good = [
  'http://example.com',
  'HTTPS://Example.COM/Path?q=1#top',
  'https://user:pw@example.com:8443/',
  'https://пример.рф/путь',
  'http://[2001:db8::1]/x',
  `https://example.com/${'x'.repeat(8192 - 20)}`,
  'https://example.com/%20%00?a=b&c=[d]|{e}',
  'https://example.com/😀',
  `https://example.com/${'ü'.repeat(1362)}`,
  `https://${'a.'.repeat(126)}é:8443/`,
  `https://${'é'.repeat(254)}:${'é'.repeat(254)}@example.com/`,
  `https://${'a.'.repeat(1000)}com/é%20`,
]
test.each(good)('a URL is given back as it was sent: %s', (url) => {
  const { href, host } = new URL(url)
  expect(Url.parse(url)).toEqual({ text: url, href, host })
})

const START = 'Invalid URL: must start with http:// or https://'
const LONG = 'Invalid URL: must be at most 8192 characters'
const ENCODED = 'Invalid URL: must be at most 8192 characters, also when encoded'
const SIGNS = 'Invalid URL: must not contain spaces, control characters or lone surrogates'
const HOST = 'Invalid URL: must be a well-formed address with a host'
const bad: [unknown, string][] = [
  [undefined, START],
  [null, START],
  [42, START],
  [['https://example.com'], START],
  ['', START],
  ['example.com', START],
  ['ftp://example.com', START],
  ['javascript:alert(1)//http://', START],
  [' https://example.com', START],
  ['https:/example.com', START],
  ['//example.com', START],
  [`https://example.com/${'x'.repeat(8193 - 20)}`, LONG],
  [`https://example.com/${'ü'.repeat(1363)}`, ENCODED],
  [`https://example.com/${'字'.repeat(8000)}`, ENCODED],
  [`https://example.com?${'x'.repeat(8192 - 20)}`, ENCODED],
  ['https://example.com/a b', SIGNS],
  ['https://example.com/\n', SIGNS],
  ['https://exa\tmple.com/', SIGNS],
  ['https://example.com/\u0000', SIGNS],
  ['https://example.com/\u007f', SIGNS],
  ['https://example.com/\u00a0', SIGNS],
  ['https://example.com/\u2028', SIGNS],
  ['https://example.com/\ud800', SIGNS],
  ['https://', HOST],
  ['http:///example.com', HOST],
  ['http://\\example.com', HOST],
  ['https://?q', HOST],
  ['https://example.com:99999/', HOST],
  ['https://[::1', HOST],
  ['https://a^b.example/', HOST],
  [`https://${'a.'.repeat(126)}éa/`, HOST],
  [`https://me@${'a.'.repeat(125)}%61%61:8443/`, HOST],
  [`https://a${'\u0301'.repeat(253)}`, HOST],
]
// spec: Code rules | 2
test.each(bad)('%j is refused: %s', (url, message) => {
  const { error } = Url.safeParse(url)
  expect(error?.issues[0]?.message).toBe(message)
})

// spec: Code rules | 4
test('the same URL is the same after parsing', () => {
  expect(urlKey(parseKnownUrl('HTTP://Example.com:80'))).toEqual(
    urlKey(parseKnownUrl('http://example.com/')),
  )
  expect(urlKey(parseKnownUrl('https://example.com/a/../b'))).toEqual(
    urlKey(parseKnownUrl('https://example.com/b')),
  )
  expect(urlKey(parseKnownUrl('https://example.com/a'))).not.toEqual(
    urlKey(parseKnownUrl('https://example.com/A')),
  )
  expect(urlKey(parseKnownUrl('https://example.com/'))).toHaveLength(16)
})

// design: 4.3 Location
test('Location is the URL as sent where a header can carry it, else its normal form', () => {
  expect(locationOf(parseKnownUrl('https://пример.рф/я'))).toBe(new URL('https://пример.рф/я').href)
  expect(locationOf(parseKnownUrl('https://пример.рф/я'))).toMatch(/^[\x21-\x7e]+$/)
})

const locations: [url: string, location: string][] = [
  // Clients differ in where they find the host: all get the reading that the blocklist was asked.
  ['http://t%c3%bcbingen.example/', 'http://xn--tbingen-n2a.example/'],
  ['http://%65xample.com/a%20b', 'http://example.com/a%20b'],
  ['https://ok.example\\@evil.example/', 'https://ok.example/@evil.example/'],
  ['https://ok.example\\a/b', 'https://ok.example/a/b'],
  ['https://a:b@c@evil.example/', 'https://a:b%40c@evil.example/'],
  ['http://0x7f.1/', 'http://127.0.0.1/'],
  ['http://2130706433/x', 'http://127.0.0.1/x'],
  ['http://[0:0::1]/', 'http://[::1]/'],
  ['http://example.com:', 'http://example.com/'],
  ['http://example.com:0443/', 'http://example.com:443/'],
  // Letter case and the default port: as sent.
  ['HTTPS://Example.COM', 'HTTPS://Example.COM'],
  ['https://EXAMPLE.com:443/a', 'https://EXAMPLE.com:443/a'],
  ['http://example.com:80?a', 'http://example.com:80?a'],
  ['http://Me:Secret@Example.com/', 'http://Me:Secret@Example.com/'],
  ['https://example.com:80/', 'https://example.com:80/'],
  // Path, query and fragment: byte for byte.
  [
    'https://e.example/a/../b//./%zz?x=%zz&y=[1]#a#%41',
    'https://e.example/a/../b//./%zz?x=%zz&y=[1]#a#%41',
  ],
  ["https://e.example/!$&'()*+,;=:@~-._", "https://e.example/!$&'()*+,;=:@~-._"],
  ['https://e.example?q=https://a\\b', 'https://e.example?q=https://a%5Cb'],
  ['https://e.example/a\\b', 'https://e.example/a/b'],
  ['https://e.example/a\\..\\b\\', 'https://e.example/a/../b/'],
  ['https://e.example/a\\b?c\\d#e\\f', 'https://e.example/a/b?c%5Cd#e%5Cf'],
  ['https://e.example/a\\b#c?d\\e', 'https://e.example/a/b#c?d%5Ce'],
  ['https://e.example/ä\\b?c\\d', 'https://e.example/%C3%A4/b?c%5Cd'],
  ['https://e.example/a%5Cb', 'https://e.example/a%5Cb'],
  // Signs that no URL may contain.
  ['https://e.example/"<>\\^`{|}', 'https://e.example/%22%3C%3E/%5E%60%7B%7C%7D'],
  [
    'https://e.example/?"<>\\^`{|}#"<>\\^`{|}',
    'https://e.example/?%22%3C%3E%5C%5E%60%7B%7C%7D#%22%3C%3E%5C%5E%60%7B%7C%7D',
  ],
  ['https://e.example/ü?{|}^`', 'https://e.example/%C3%BC?%7B%7C%7D%5E%60'],
]
test.each(locations)('Location of %s is %s', (url, location) => {
  expect(locationOf(parseKnownUrl(url))).toBe(location)
})

test('a URL is refused if Location would be too long', () => {
  const url = (signs: number) => `https://e.example/?${'{'.repeat(signs)}`
  expect(Url.safeParse(url(2724)).success).toBe(true)
  expect(Url.safeParse(url(2725)).error?.issues[0]?.message).toBe(
    'Invalid URL: must be at most 8192 characters, also when encoded',
  )
})

test.each([
  ['example.com', 'https://example.com'],
  ['acme.com/x?y=1#z', 'https://acme.com/x?y=1#z'],
  ['münchen.example:8443/straße', 'https://münchen.example:8443/straße'],
  ['192.0.2.1/x', 'https://192.0.2.1/x'],
])('a person may leave out the scheme of %s', (typed, url) => {
  expect(withScheme(typed)).toBe(url)
  expect(Url.safeParse(url).success).toBe(true)
})

test.each([
  'http://example.com',
  'HTTPS://example.com',
  'javascript:alert(1.5)',
  'mailto:ann@example.com',
  'data:text/html,a.b',
  '//example.com',
  'ann@example.com',
  'nonsense',
  'a b.example',
  '',
])('nothing is added to “%s”', (typed) => {
  expect(withScheme(typed)).toBe(typed)
})
