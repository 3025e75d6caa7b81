import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { type Seen, Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** The page of all links: making one, searching, paging, the order by hits. */

const PASSCODE = /value="([A-Z0-9]{24})"/
const LINKS = '/app/links'

/** The codes of a page, in its order. */
const codesOf = ({ text }: Seen) =>
  [...text.matchAll(/id="short-([A-Z0-9]+)"/g)].map(([, code]) => code ?? '')

async function makeLinks(app: TestApp, count: number, key = 'free'): Promise<string[]> {
  const urls = Array.from({ length: count }, (_, n) => `https://example.com/page-${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
  return (body.results as { code: string }[]).map(({ code }) => code)
}

test('an account without links is told what to do first', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const { status, text } = await ann.get(LINKS)
  expect(status).toBe(200)
  expect(text).toContain('No links yet')
  expect(text).not.toContain('<table')
})

test('a URL that is shortened gives its short URL, its QR code and its passcode, once', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const made = await free.post(LINKS, { url: 'https://example.com/spring' })
  expect(made.status).toBe(200)
  const passcode = PASSCODE.exec(made.text)?.[1] ?? ''
  const [code = ''] = codesOf(made)
  expect(made.text).toContain(`value="http://hop.test/${code}"`)
  expect(made.text).toContain(`/app/links/${code}/qr.svg`)
  const json = { code, passcode, url: 'https://example.com/summer' }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
  for (const path of [LINKS, `${LINKS}/${code}`]) {
    expect((await free.get(path)).text).not.toContain(passcode)
  }
  expect(app.log.join()).not.toContain(passcode)
  expect([made.location, ...made.setCookies].join()).not.toContain(passcode)
})

test('a URL that the account has already gives the same code, says so, and shows no passcode', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const first = await app.shorten('https://example.com/spring')
  const again = await free.post(LINKS, { url: 'https://EXAMPLE.com/spring' })
  expect(again.text).toContain('You already have a short link for this URL')
  expect(again.text).toContain(`value="http://hop.test/${first.code}"`)
  expect(again.text).not.toMatch(PASSCODE)
  expect(codesOf(again)).toEqual([first.code])
})

const refused = [
  { url: 'example.com', error: 'Invalid URL: must start with http:// or https://' },
  { url: 'javascript:alert(1)', error: 'Invalid URL: must start with http:// or https://' },
  { url: 'https://a b.example', error: 'must not contain spaces' },
  { url: 'http://hop.test/LOOPED', error: 'Destination URL is not allowed' },
]
test.each(refused)('$url is refused beside its field, which keeps it', async ({ url, error }) => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const { status, text } = await ann.post(LINKS, { url })
  expect(status).toBe(422)
  expect(text).toMatch(new RegExp(`id="field-url-error">[^<]*${error}`))
  expect(text).toMatch(/aria-invalid="true"[^>]*aria-describedby="field-url-error"/)
  expect(text).toContain(`value="${url}"`)
  expect(text).toContain('No links yet')
})

test('a code of one’s own is reserved with a destination or without one', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const send = (code: string, destination: string) =>
    free.post(`${LINKS}/claim`, { code, destination }, { from: LINKS })
  const bare = await send('spring26', '')
  expect(bare.text).toContain('The code is yours')
  expect(bare.text).toMatch(PASSCODE)
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  await send('SUMMER26', 'https://example.com/summer')
  const { headers } = await app.call('GET', '/summer26')
  expect(headers.get('location')).toBe('https://example.com/summer')
  expect((await free.get(LINKS)).text).toContain('No destination yet')
})

const claims = [
  { code: 'TAKEN26', destination: '', field: 'code', error: 'Code already in use: TAKEN26' },
  { code: 'MY-CODE', destination: '', field: 'code', error: 'Invalid code' },
  { code: 'AUTUMN', destination: 'ftp://x', field: 'destination', error: 'Invalid URL' },
  { code: 'AUTUMN', destination: 'http://hop.test/A', field: 'destination', error: 'not allowed' },
]
test.each(claims)(
  '$code with the destination ($destination) is refused beside its field, and reserves nothing',
  async (sent) => {
    await using app = await testApp()
    await app.reserve('TAKEN26', 'pro')
    const ann = await makeMember(app, 'ann@example.com')
    const { code, destination, field, error } = sent
    const { status, text } = await ann.post(
      `${LINKS}/claim`,
      { code, destination },
      { from: LINKS },
    )
    expect(status).toBe(422)
    expect(text).toMatch(new RegExp(`id="field-${field}-error">[^<]*${error}`))
    expect(text).toContain(`value="${code}"`)
    expect(text).toContain('<details open>')
    expect(text).toContain('No links yet')
    expect((await app.call('GET', '/api/lookup/AUTUMN')).status).toBe(404)
  },
)

test('links are newest first, fifty a page, and a page after the last one is the last', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const codes = (await makeLinks(app, 100)).toReversed()
  const more = await app.shorten('https://example.com/newest')
  const all = [more.code, ...codes]
  const pages = await Promise.all([1, 2, 3].map((page) => free.get(`${LINKS}?page=${page}`)))
  expect(pages.map(codesOf)).toEqual([all.slice(0, 50), all.slice(50, 100), all.slice(100)])
  expect(pages[1]?.text).toMatch(/href="\/app\/links" rel="prev"/)
  expect(pages[1]?.text).toMatch(/href="\/app\/links\?page=3" rel="next"/)
  expect(pages[2]?.text).not.toContain('rel="next"')
  for (const page of ['4', '99999999999999999999', '-1', 'x', '1e9']) {
    const seen = codesOf(await free.get(`${LINKS}?page=${page}`))
    expect([page, seen]).toEqual([
      page,
      /^[1-9]\d*$/.test(page) ? all.slice(100) : all.slice(0, 50),
    ])
  }
})

test('a search finds parts of codes and URLs in any case, and keeps to them on the next page', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await makeLinks(app, 100)
  await app.claim('SPRING26', 'https://other.example/')
  await app.shorten('https://example.com/page-1', 'pro')
  expect(codesOf(await free.get(`${LINKS}?q=pring2`))).toEqual(['SPRING26'])
  const found = await free.get(`${LINKS}?q=PAGE-`)
  expect(codesOf(found)).toHaveLength(50)
  expect(found.text).toContain('100 of 101 links')
  expect(found.text).toContain('href="/app/links?q=PAGE-&amp;page=2"')
  expect(codesOf(await free.get(`${LINKS}?q=PAGE-&page=2`))).toHaveLength(50)
  const none = await free.get(`${LINKS}?q=%3Cscript%3E`)
  expect(none.text).toContain('No links match “&lt;script&gt;”')
  expect(none.text).toContain('value="&lt;script&gt;"')
})

test('a search text that is too long is cut, and the page says so', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const start = `https://example.com/${'x'.repeat(180)}`
  await app.shorten(`${start}-1`)
  const found = await free.get(`${LINKS}?q=${encodeURIComponent(`${start}${'y'.repeat(5000)}`)}`)
  expect(found.status).toBe(200)
  expect(codesOf(found)).toHaveLength(1)
  expect(found.text).toContain('1 of 1 link match the first 200 characters of your search')
  expect(found.text).not.toContain('y'.repeat(10))
})

test('what htmx asks for while somebody types is the list alone, and the address that it has', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const headers = { 'hx-request': 'true', 'hx-target': 'list' }
  const seen = await free.get(`${LINKS}?q=spring`, headers)
  expect(seen.text).not.toContain('<html')
  expect(seen.text.trim()).toStartWith('<div id="list">')
  expect(seen.headers.get('hx-replace-url')).toBe('/app/links?q=spring')
  expect(codesOf(seen)).toEqual(['SPRING26'])
  expect((await free.get(`${LINKS}?q=`, headers)).headers.get('hx-replace-url')).toBe(LINKS)
})

test('most hits first puts the most followed link on top', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '10' } })
  const free = await makeMember(app, 'free@example.com')
  const codes = await makeLinks(app, 3)
  const [oldest = ''] = codes
  for (let n = 0; n < 2; n++) await app.call('GET', `/${oldest}`)
  const byHits = () => free.get(`${LINKS}?sort=hits`)
  await eventually('the hits are counted', async () => codesOf(await byHits())[0] === oldest)
  const seen = await byHits()
  expect(codesOf(seen)).toEqual([oldest, codes[2] ?? '', codes[1] ?? ''])
  expect(seen.text).toContain('Hits of the last few seconds')
})

test('nobody sees a link of another account', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const { code } = await app.shorten('https://secret.example/', 'pro')
  for (const path of [LINKS, `${LINKS}?q=secret`, `${LINKS}?sort=hits`, `${LINKS}/export.csv`]) {
    const { status, text } = await ann.get(path)
    expect([path, status]).toEqual([path, 200])
    expect(text).not.toContain(code)
    expect(text).not.toContain('secret.example/')
  }
  const anonymous = await new Visitor(app).get(LINKS)
  expect(anonymous.location).toBe('/app/sign-in?next=%2Fapp%2Flinks')
})

test('a stored URL is shown as what it is: escaped, its signs that turn text visible', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = [
    'https://bank.example@evil.example/"><script>alert(1)</script>',
    'https://example.com/a\u202Efdp.exe',
    'https://bаnk.example/',
  ]
  for (const url of urls) await app.shorten(url)
  const { text } = await free.get(LINKS)
  expect(text).not.toContain('<script>alert')
  expect(text).toContain('https://bank.example@<b>evil.example</b>')
  expect(text).not.toContain('\u202E')
  expect(text).not.toContain('bаnk')
  expect(text).toContain('<b>xn--bnk-6cd.example</b>')
  for (const [link] of text.matchAll(/<a class="destination"[^>]*>/g)) {
    expect(link).toContain('rel="noreferrer noopener"')
  }
})

test('a change from the dashboard takes a place of the account’s write budget, and a full one loses nothing', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  for (let n = 0; n < 59; n++)
    await free.post(LINKS, { url: `https://example.com/${n}` }, { from: LINKS })
  expect((await app.call('POST', '/api/reserve', { key: 'free', json: {} })).status).toBe(400)
  const full = await free.post(LINKS, { url: 'https://example.com/one-more' })
  expect(full.status).toBe(429)
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(full.text).toContain('value="https://example.com/one-more"')
  expect(full.text).toContain('Rate limit exceeded')
  const claim = { code: 'SPRING26', destination: 'https://example.com/' }
  const late = await free.post(`${LINKS}/claim`, claim, { from: LINKS })
  expect(late.status).toBe(429)
  expect(late.text).toContain('value="SPRING26"')
})

test('during maintenance links are shown, and a change waits with everything that was typed', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  app.maintenance(app.now() + 60_000)
  const seen = await free.post(LINKS, { url: 'https://example.com/later' })
  expect(seen.status).toBe(503)
  expect(seen.headers.get('retry-after')).toBe('60')
  expect(seen.text).toContain('value="https://example.com/later"')
  expect((await free.get(LINKS)).text).toContain('No links yet')
})
