import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disableLink } from '../support/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'

const BROWSER = { 'sec-fetch-dest': 'document', 'accept-language': 'de' }

const open = (app: TestApp, path: string) => app.call('GET', path, { headers: BROWSER })

test('a browser that opens an unknown code gets a page in its language', async () => {
  await using app = await testApp()
  const page = await open(app, '/NOSUCH26')
  expect(page.status).toBe(404)
  expect(page.headers.get('content-type')).toBe('text/html;charset=utf-8')
  expect(page.text).toContain('<h1>Diesen Link gibt es nicht</h1>')
  expect(page.headers.get('x-ratelimit-limit')).toBe('300')
  expect(page.headers.get('x-request-id')).toBeString()
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
})

test('a program gets the same JSON as ever', async () => {
  await using app = await testApp()
  for (const headers of [{}, { accept: '*/*' }, { 'sec-fetch-dest': 'empty' }]) {
    const answer = await app.call('GET', '/NOSUCH26', { headers })
    expect(answer).toMatchObject({ status: 404, body: { error: 'Code not found: NOSUCH26' } })
  }
  expect((await app.call('GET', '/api/lookup/NOSUCH26', { headers: BROWSER })).body).toEqual({
    error: 'Code not found: NOSUCH26',
  })
})

test('the page of a disabled code is 410, and of a used-up limit 429 with Retry-After', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  await app.reserve('SPRING26')
  await disableLink(app, 'SPRING26', 'Phishing')
  const disabled = await open(app, '/SPRING26')
  expect(disabled.status).toBe(410)
  expect(disabled.text).toContain('<h1>Dieser Link ist nicht mehr verfügbar</h1>')
  await open(app, '/NOSUCH26')
  const limited = await open(app, '/NOSUCH26')
  expect(limited.status).toBe(429)
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(limited.text).toContain('<h1>Zu viele Anfragen</h1>')
})

test('a browser that opens a link is redirected as before', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/landing')
  const answer = await open(app, `/${code}`)
  expect(answer.status).toBe(302)
  expect(answer.headers.get('location')).toBe('https://example.com/landing')
})

test('each state of a link has its own page, and one answer for programs', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '0' } })
  const states = {
    PAUSED26: { paused: true },
    LATER26: { starts_at: '2027-01-01T00:00:00Z' },
    OVER26: { starts_at: '2027-01-01T00:00:00Z', paused: true },
  }
  for (const [code, json] of Object.entries(states)) {
    await app.claim(code)
    await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
  }
  const title = async (path: string) =>
    /<h1>([^<]*)/.exec((await app.call('GET', path, { headers: BROWSER })).text)?.[1]
  expect(await title('/PAUSED26')).toBe('Dieser Link ist pausiert')
  expect(await title('/LATER26')).toBe('Dieser Link ist noch nicht aktiv')
  expect(await title('/OVER26')).toBe('Dieser Link ist pausiert')
  expect(await title('/NOSUCH26')).toBe('Diesen Link gibt es nicht')
  for (const code of [...Object.keys(states), 'NOSUCH26']) {
    const { status, body } = await app.call('GET', `/${code}`)
    expect([status, body]).toEqual([404, { error: `Code not found: ${code}` }])
  }
})

test('the pages have the name, the logo and the typeface of the service', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'logo.svg')
  writeFileSync(file, '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
  await using app = await testApp({ env: { OPERATOR_NAME: 'Acme & Co', OPERATOR_LOGO: file } })
  const { text } = await open(app, '/NOSUCH26')
  expect(text).toContain('<img src="/-/logo" alt="">Acme &amp; Co')
  const logo = await app.call('GET', '/-/logo')
  expect(logo.headers.get('content-type')).toBe('image/svg+xml')
  expect(logo.headers.get('content-security-policy')).toContain('sandbox')
  const [, font = ''] = /url\(([^)]+)\)/.exec(text) ?? []
  expect((await app.call('GET', font)).headers.get('content-type')).toBe('font/woff2')
})

test('without a logo there is none', async () => {
  await using app = await testApp()
  expect((await app.call('GET', '/-/logo')).status).toBe(404)
})
