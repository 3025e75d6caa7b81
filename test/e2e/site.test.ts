import { expect, test } from 'bun:test'
import { eventually, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/database.ts'

/** What the host itself answers, and where it sends visitors of links that do not exist. */

const BROWSER = { 'sec-fetch-dest': 'document' }
const NOT_FOUND_URL = 'https://example.com/sorry?from=link'

test.each([
  [{}, '/app'],
  [{ ROOT_URL: 'https://example.com/welcome' }, 'https://example.com/welcome'],
])('with %j, / redirects to %s', async (env, location) => {
  await using app = await testApp({ env: { ...env } as Record<string, string> })
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await app.call(method, '/')
    expect([status, headers.get('location')]).toEqual([302, location])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('/robots.txt keeps search engines out of the dashboard and the API, not off short links', async () => {
  await using app = await testApp()
  const { status, headers, text } = await app.call('GET', '/robots.txt')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(text).toBe('User-agent: *\nDisallow: /app\nDisallow: /api/\n')
  expect(headers.get('cache-control')).toContain('max-age=')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test('/favicon.ico is an icon that browsers may keep', async () => {
  await using app = await testApp()
  const { status, headers, bytes } = await app.call('GET', '/favicon.ico')
  expect([status, headers.get('content-type')]).toEqual([200, 'image/x-icon'])
  // An ICONDIR with at least one image.
  expect([...bytes.subarray(0, 4)]).toEqual([0, 0, 1, 0])
  expect(bytes[4]).toBeGreaterThan(0)
  expect(headers.get('cache-control')).toContain('max-age=')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test('these paths use up nothing of a visitor’s limit', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  for (const path of ['/', '/robots.txt', '/favicon.ico', '/', '/robots.txt', '/favicon.ico']) {
    expect((await app.call('GET', path)).status).toBeLessThan(400)
  }
  expect((await app.call('GET', '/NOSUCH26')).headers.get('x-ratelimit-remaining')).toBe('0')
})

test('with NOT_FOUND_URL a browser that opens an unknown path is redirected', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL } })
  for (const path of ['/NOSUCH26', '/not-a-code', '/NOSUCH26/', '/a/b', '//NOSUCH26']) {
    const { status, headers, text } = await app.call('GET', path, { headers: BROWSER })
    expect({ path, status, location: headers.get('location') }).toEqual({
      path,
      status: 302,
      location: NOT_FOUND_URL,
    })
    expect(text).toBe('')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('vary')).toContain('Accept')
    expect(headers.get('x-ratelimit-limit')).toBe('300')
    expect(headers.get('content-type')).toBeNull()
  }
})

test('with NOT_FOUND_URL the page of a link that does not redirect says why', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL, ANONYMOUS_READS_PER_MINUTE: '0' } })
  const states = [
    ['PAUSED26', { paused: true }, 404, 'This link is paused'],
    ['LATER026', { starts_at: '2030-01-01T00:00:00Z' }, 404, 'This link is not active yet'],
    ['EXPIRED6', { expires_at: '2020-01-01T00:00:00Z' }, 410, 'This link has expired'],
  ] as const
  await app.reserve('RESERVED26')
  for (const [code, json] of states) {
    await app.claim(code)
    expect((await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })).status).toBe(200)
  }
  const reserved = ['RESERVED26', {}, 404, 'This link is not active yet'] as const
  for (const [code, , status, title] of [...states, reserved]) {
    for (const path of [`/${code}`, `/${code}/`]) {
      const page = await app.call('GET', path, { headers: BROWSER })
      expect([path, page.status, page.headers.get('location')]).toEqual([path, status, null])
      expect(page.text).toContain(`<h1>${title}</h1>`)
    }
  }
})

test('with NOT_FOUND_URL programs get the same JSON as without, and other problems their page', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL, ANONYMOUS_READS_PER_MINUTE: '2' } })
  for (const headers of [{}, { accept: '*/*' }]) {
    const answer = await app.call('GET', '/NOSUCH26', { headers })
    expect(answer).toMatchObject({ status: 404, body: { error: 'Code not found: NOSUCH26' } })
  }
  const limited = await app.call('GET', '/NOSUCH26', { headers: BROWSER })
  expect([limited.status, limited.headers.get('location')]).toEqual([429, null])
  expect(limited.text).toContain('<h1>Too many requests</h1>')
})

test('with NOT_FOUND_URL a link redirects to its destination as before', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL } })
  const { code } = await app.shorten('https://example.com/landing')
  const { status, headers } = await app.call('GET', `/${code}`, { headers: BROWSER })
  expect([status, headers.get('location')]).toEqual([302, 'https://example.com/landing'])
  await eventually('the hit is counted', async () => {
    return (await app.call('GET', `/api/lookup/${code}`)).body.hit_count === 1
  })
})

test('a link that the database fails to find is a page for a browser, JSON for a program', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL } })
  using _broken = breakDatabase(app.dataDir)
  const headers = { ...BROWSER, 'accept-language': 'fr' }
  const page = await app.call('GET', '/UNCACHED', { headers })
  expect(page.status).toBe(500)
  expect(page.text).toContain('<h1>Ce lien ne peut pas être ouvert pour le moment</h1>')
  expect(page.headers.get('content-type')).toBe('text/html;charset=utf-8')
  expect(page.headers.get('x-request-id')).toBeString()
  const answer = await app.call('GET', '/UNCACHED')
  expect(answer).toMatchObject({ status: 500, body: { error: 'Internal server error' } })
})
