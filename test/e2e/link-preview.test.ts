import { expect, test } from 'bun:test'
import { disableLink } from '../support/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { IPHONE, ua } from '../support/destination-rules.ts'
import { hitsOf, LOCKED, send, WORD, withPassword } from '../support/link-passwords.ts'
import { makeMember } from '../support/members.ts'

/** `+` behind a short URL: where a link leads, without following it. */

const CODE = 'SPRING26'
const URL = 'https://www.example.com/landing?a=1&b=%22%3E'
const BROWSER = { 'sec-fetch-dest': 'document' }

const open = (app: TestApp, path: string, headers: Record<string, string> = BROWSER) =>
  app.call('GET', path, { headers })
const change = (app: TestApp, json: object) =>
  app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
const hits = async (app: TestApp) => (await app.call('GET', `/api/lookup/${CODE}`)).body.hit_count

test('a browser gets a page with the destination, in six languages, and no hit is counted', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  await change(app, { aliases: ['menu/lunch'] })
  const languages = { de: 'März', en: 'March', es: 'marzo', fr: 'mars', ja: '3月', zh: '3月' }
  for (const [language, month] of Object.entries(languages)) {
    const page = await open(app, '/menu/lunch+', { ...BROWSER, 'accept-language': language })
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html;charset=utf-8')
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('x-robots-tag')).toBe('noindex')
    expect(page.headers.get('location')).toBeNull()
    expect(page.text).toContain(`<html lang="${language}">`)
    expect(page.text).toContain('<strong>www.example.com</strong>')
    expect(page.text).toContain('https://www.example.com/landing?a=1&amp;b=%22%3E')
    expect(page.text).toContain('/menu/lunch<')
    expect(page.text).toContain(month)
    expect(page.text).toContain('<a href="/menu/lunch"')
  }
  expect(await hits(app)).toBe(0)
  expect((await open(app, '/menu/lunch')).headers.get('location')).toBe(URL)
})

test('a program gets what a lookup gives, also with the sign encoded', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  await open(app, `/${CODE}`)
  const expected = (await app.call('GET', `/api/lookup/${CODE}`)).body
  expect(expected).toMatchObject({ code: CODE, url: URL, hit_count: 1 })
  for (const path of [`/${CODE}+`, `/${CODE}%2B`, `/${CODE.toLowerCase()}%2b`, `/${CODE}+/`]) {
    const { status, headers, body } = await open(app, path, {})
    expect({ path, status, body }).toEqual({ path, status: 200, body: expected })
    expect(headers.get('x-robots-tag')).toBe('noindex')
  }
  const head = await app.call('HEAD', `/${CODE}+`)
  expect([head.status, head.text]).toEqual([200, ''])
  expect(await hits(app)).toBe(1)
})

test('of a link with a password it tells nothing of the destination', async () => {
  await using app = await testApp()
  await withPassword(app)
  for (const headers of [BROWSER, {}]) {
    const shown = await open(app, `/${LOCKED}+`, headers)
    expect(shown.status).toBe(200)
    expect(JSON.stringify([...shown.headers]) + shown.text).not.toContain('d.example')
  }
  expect((await open(app, `/${LOCKED}+`, {})).body.url).toBeNull()
  const form = await send(app, WORD, `/${LOCKED}+`)
  expect(form.headers.get('location')).toBeNull()
  expect(await hitsOf(app)).toBe(0)
})

test('a link that does not redirect answers as without the sign, and nothing counts', async () => {
  const env = { ANONYMOUS_READS_PER_MINUTE: '0', ANONYMOUS_REDIRECTS_PER_MINUTE: '0' }
  await using app = await testApp({ env })
  await app.claim(CODE, URL)
  const over = 'https://over.example/'
  const states = [
    { json: { paused: true }, status: 404 },
    { json: { paused: null, expires_at: '2020-01-01T00:00:00Z' }, status: 410 },
    { json: { expired_url: over }, status: 302 },
    { json: { expires_at: null, max_hits: 1 }, status: 200 },
  ]
  for (const { json, status } of states) {
    expect((await change(app, json)).status).toBe(200)
    const asked = await open(app, `/${CODE}+`)
    expect({ json, status: asked.status }).toEqual({ json, status })
    expect(asked.headers.get('location')).toBe(status === 302 ? over : null)
  }
  expect((await open(app, `/${CODE}`)).headers.get('location')).toBe(URL)
  expect((await open(app, `/${CODE}+`)).headers.get('location')).toBe(over)
  await change(app, { max_hits: null, expired_url: null })
  await disableLink(app, CODE, 'Phishing')
  expect((await open(app, `/${CODE}+`)).status).toBe(410)
  expect(await hits(app)).toBe(1)
})

test('an unknown path with the sign is charged like an unknown code, and so is a preview', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  await app.claim(CODE, URL)
  const from = '192.0.2.9'
  const statuses: number[] = []
  for (const path of ['/NOSUCH26+', `/${CODE}+`, `/${CODE}+`, `/${CODE}`]) {
    statuses.push((await app.call('GET', path, { from, headers: BROWSER })).status)
  }
  expect(statuses).toEqual([404, 200, 429, 302])
})

test('an alias that ends in the sign is a link, and has a preview of its own', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const other = 'https://other.example/'
  await app.claim('OTHER26', other)
  await app.call('PATCH', '/api/links/OTHER26', { key: 'free', json: { aliases: [`${CODE}+`] } })
  expect((await open(app, `/${CODE}+`)).headers.get('location')).toBe(other)
  expect((await open(app, `/${CODE}++`, {})).body.url).toBe(other)
})

test('signs that hide or turn a part of the destination are shown as they are encoded', async () => {
  await using app = await testApp()
  await app.claim(CODE, 'https://bank.example@other.example/\u202emoc.knab\u200b')
  const { text } = await open(app, `/${CODE}+`)
  expect(text).toContain('<strong>other.example</strong>')
  expect(text).toContain('https://bank.example@other.example/%E2%80%AEmoc.knab%E2%80%8B')
})

test('a preview shows where its visitor goes by rule, and says that others go elsewhere', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const german = { ...BROWSER, 'accept-language': 'de' }
  const sentence = 'Je nach Gerät'
  expect((await open(app, `/${CODE}+`, german)).text).not.toContain(sentence)
  const destinations = [
    { when: { os: ['ios'] }, url: 'https://phone.example/' },
    { when: { query: { v: '2' } }, url: 'https://second.example/' },
  ]
  expect((await change(app, { destinations })).status).toBe(200)
  const hostsOf = async (query: string, headers: Record<string, string>) => {
    const { text } = await open(app, `/${CODE}+${query}`, { ...german, ...headers })
    expect(text).toContain(sentence)
    return ['www.example.com', 'phone.example', 'second.example'].filter((host) =>
      text.includes(host),
    )
  }
  expect(await hostsOf('', {})).toEqual(['www.example.com'])
  expect(await hostsOf('', ua(IPHONE))).toEqual(['phone.example'])
  expect(await hostsOf('?v=2', {})).toEqual(['second.example'])
  // Programs get the fields of a lookup, and a password hides every destination.
  const program = await open(app, `/${CODE}+`, ua(IPHONE))
  expect(program.body.url).toBe(URL)
  expect((await change(app, { password: WORD })).status).toBe(200)
  expect(await hostsOf('', ua(IPHONE))).toEqual([])
})

test('a new link and the page of a link lead to the preview', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const created = await free.post('/app/links', { url: URL })
  const code = /app\/links\/([A-Z0-9]{8})/.exec(created.text)?.[1]
  const page = await free.get(`/app/links/${code}`)
  for (const { text } of [created, page]) expect(text).toContain(`href="http://hop.test/${code}+"`)
})
