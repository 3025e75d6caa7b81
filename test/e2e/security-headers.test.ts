import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { makeMember } from '../support/members.ts'

/** Headers of the API, images, redirects and pages. A redirect has no body to guess the type of. */

const answers = (code: string) => [
  { path: '/NOCODE', status: 404 },
  { path: `/qr/${code}`, status: 302 },
  { path: `/cdn/qr/${code}.png`, status: 200 },
  { path: '/cdn/qr/NOCODE.png', status: 404 },
  { path: `/api/qr/${code}`, status: 200 },
  { path: `/api/qr/${code}?size=1`, status: 400 },
  { path: `/api/lookup/${code}`, status: 200 },
  { path: '/api/lookup/NOCODE', status: 404 },
  { path: '/api/list', status: 401 },
  { path: '/api/shorten', status: 405 },
  { path: '/api/nothing', status: 404 },
  { path: '/api/status', status: 200 },
  { path: '/app/sign-in', status: 200 },
  { path: '/app/nothing', status: 404 },
  { path: '/docs', status: 200 },
  { path: '/docs/json', status: 200 },
]

test('no browser may guess the type of an answer', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  for (const { path, status } of answers(code)) {
    const answer = await app.call('GET', path)
    const type = answer.headers.get('x-content-type-options')
    expect({ path, status: answer.status, type }).toEqual({ path, status, type: 'nosniff' })
  }
})

test('a client at its limit gets the header too', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  const { code } = await app.shorten('https://example.com/')
  const from = '198.51.100.7'
  await app.call('GET', '/NOCODE', { from })
  for (const path of ['/NOCODE', `/api/lookup/${code}`]) {
    const { status, headers } = await app.call('GET', path, { from })
    expect(status).toBe(429)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('a service behind https tells browsers to stay with it; one behind http does not', async () => {
  await using plain = await testApp()
  await using secure = await testApp({ env: { BASE_URL: 'https://hop.test' } })
  for (const path of ['/app/sign-in', '/app/nothing', '/app', '/api/status', '/api/list']) {
    const stays = await secure.call('GET', path)
    expect(stays.headers.get('strict-transport-security')).toBe('max-age=31536000')
    const free = await plain.call('GET', path)
    expect(free.headers.has('strict-transport-security')).toBe(false)
  }
})

test('an export that the browser gives up is no failure', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = Array.from({ length: 100 }, (_, i) => `https://x.example/${'a'.repeat(8000)}${i}`)
  await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const { cookie } = free
  const answer = await fetch(`${app.url}/app/links/export.csv`, { headers: { cookie } })
  await answer.body?.cancel()
  const whole = await free.get('/app/links/export.csv')
  expect(whole.text.split('\r\n')).toHaveLength(102)
  expect(app.log.join()).not.toContain('request.failed')
})
