import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { type Seen, Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** The page of all links: making one, searching, paging, the order by hits. */

const PASSCODE = /value="([A-Z0-9]{24})"/
const LINKS = '/app/links'

/** The codes of a page, in its order. */
const codesOf = ({ text }: Seen) =>
  [...text.matchAll(/name="code" value="([A-Z0-9]+)"/g)].map(([, code]) => code ?? '')

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
  expect(again.text).toContain(`value="http://hop.test/${first.code}"`)
  expect(again.text).not.toMatch(PASSCODE)
  expect(codesOf(again)).toEqual([first.code])
})

test('a code of one’s own is reserved with a destination or without one', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const send = (code: string, destination: string) => free.post(LINKS, { code, url: destination })
  const bare = await send('spring26', '')
  expect(bare.text).toContain('The path is yours')
  expect(bare.text).toMatch(PASSCODE)
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  await send('SUMMER26', 'https://example.com/summer')
  const { headers } = await app.call('GET', '/summer26')
  expect(headers.get('location')).toBe('https://example.com/summer')
  expect((await free.get(LINKS)).text).toContain('No destination')
})

test('the scheme of a URL may be missing, with a code and without one', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await free.post(LINKS, { url: 'example.com/spring?a=b' })
  await free.post(LINKS, { url: 'Example.com:8443', code: 'SUMMER26' })
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  expect((body.items as { url: string }[]).map(({ url }) => url)).toEqual([
    'https://Example.com:8443',
    'https://example.com/spring?a=b',
  ])
})

test('asking for free codes is charged like a lookup', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const ask = () => free.get(`${LINKS}/code?code=SPRING26`)
  for (let n = 0; n < 300; n++) expect((await ask()).status).toBe(200)
  expect((await ask()).status).toBe(429)
  expect((await app.call('GET', '/api/list', { key: 'free' })).status).toBe(429)
  expect((await free.get(`${LINKS}/code?code=MY-CODE`)).status).toBe(429)
  expect((await free.get(`${LINKS}/code?code=MY//CODE`)).status).toBe(200)
})

test('a URL in the address of the page is in the form, and is kept through the sign-in', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const url = 'https://example.com/a?b=c&d=(e)*!\'"<'
  const paths = [
    `${LINKS}?url=${encodeURIComponent(url)}`,
    `${LINKS}?url=%E2%80%8B${encodeURIComponent(url)}%C2%AD`,
  ]
  const value = 'value="https://example.com/a?b=c&amp;d=(e)*!&#39;&quot;&lt;"'
  for (const path of paths) {
    expect((await free.get(path)).text).toContain(value)
    const { location } = await new Visitor(app).get(path)
    const next = new URL(location ?? '', app.url).searchParams.get('next')
    expect(decodeURIComponent(next ?? '')).toBe(decodeURIComponent(path))
  }
  expect((await free.get(`${LINKS}?url=${'x'.repeat(9000)}`)).text).not.toContain('xxxx')
})

test('a new link replaces the form, the message and the list for htmx, and the search stays', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.shorten('https://example.com/spring')
  await app.shorten('https://other.example/')
  const headers = {
    'hx-request': 'true',
    'hx-target': 'create',
    'hx-current-url': `${app.url}${LINKS}?q=spring`,
  }
  const sent = { url: 'https://example.com/spring-2' }
  const made = await free.post(LINKS, sent, { headers })
  expect(made.status).toBe(200)
  expect(made.text).not.toContain('<html')
  expect(made.text.trim()).toStartWith('<form')
  expect(made.text).toContain('id="toasts" hx-swap-oob="innerHTML"')
  expect(made.text).toContain('2 of 3 links')
  expect(codesOf(made)).toHaveLength(2)
  expect(made.text).toMatch(PASSCODE)
  // A browser reports each other status in its console.
  const refused = await free.post(LINKS, { url: 'nonsense' }, { headers })
  expect(refused.status).toBe(200)
  expect(refused.text.trim()).toStartWith('<form')
  expect(refused.text).toContain('id="field-url-error"')
  expect(refused.text).not.toContain('hx-swap-oob')
})

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
  expect(found.text).toMatch(/id="found"[^>]*>1 of 1 link[^<]* 200 /)
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
})

test('a search match is marked where it is, also far behind the host of a long URL', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.shorten(`https://example.com/${'a/'.repeat(150)}?from=flyer`)
  await app.claim('FLYERS26', 'https://example.com/')
  const { text } = await free.get(`${LINKS}?q=flyer`)
  expect(text).toContain('<b>example.com</b>/…a/?from=<mark>flyer</mark>')
  expect(text).toContain('<mark>FLYER</mark>S26')
  expect((await free.get(LINKS)).text).not.toContain('<mark>')
})

test('a row has the title, the tags, the state and the last 30 days of its link', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '10' } })
  const free = await makeMember(app, 'free@example.com')
  const past = new Date(app.now() - 1000).toISOString()
  const future = new Date(app.now() + 3_600_000).toISOString()
  const patches = [
    { code: 'SPRING26', json: { title: 'A <b>poster</b>', tags: ['print', 'spring'] } },
    { code: 'PAUSED26', json: { paused: true } },
    { code: 'EXPIRED26', json: { expires_at: past } },
    { code: 'LATER2026', json: { starts_at: future } },
  ]
  for (const { code, json } of patches) {
    await app.claim(code, `https://example.com/${code}`)
    const { status } = await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
    expect(status).toBe(200)
  }
  await app.call('GET', '/SPRING26')
  const rowOf = async (code: string) =>
    new RegExp(`<tr[^>]*>(?:(?!</tr>)[^])*value="${code}"[^]*?</tr>`).exec(
      (await free.get(LINKS)).text,
    )?.[0] ?? ''
  await eventually('the hit is counted', async () =>
    (await rowOf('SPRING26')).includes('1 hit in 30 days'),
  )
  const spring = await rowOf('SPRING26')
  expect(spring).toContain('A &lt;b&gt;poster&lt;/b&gt;')
  expect(spring).toContain('<span class="tag">print</span><span class="tag">spring</span>')
  for (const [code, label] of [
    ['PAUSED26', 'Paused'],
    ['EXPIRED26', 'Expired'],
    ['LATER2026', 'Not started'],
  ] as const) {
    expect(await rowOf(code)).toContain(`<span class="badge note">${label}</span>`)
  }
  expect(spring).not.toContain('badge')
  const found = await free.get(`${LINKS}?q=poster`)
  expect(codesOf(found)).toEqual(['SPRING26'])
  expect(codesOf(await free.get(`${LINKS}?tag=Spring`))).toEqual(['SPRING26'])
  expect((await free.get(`${LINKS}?tag=none`)).text).toContain('with the tag “none”')
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
  expect(text).toContain('>bank.example@<b>evil.example</b>')
  expect(text).not.toContain('\u202E')
  expect(text).not.toContain('bаnk')
  expect(text).toContain('<b>xn--bnk-6cd.example</b>')
  expect(text).not.toContain('href="https://bank')
  for (const [link] of text.matchAll(/<a [^>]*target="_blank"[^>]*>/g)) {
    expect(link).toContain('rel="noopener noreferrer"')
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
  const claim = { code: 'SPRING26', url: 'https://example.com/' }
  const late = await free.post(LINKS, claim)
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
