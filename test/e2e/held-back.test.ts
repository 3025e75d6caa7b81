import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'

/** Requests that do not follow a link with a maximum number of hits. */

const DESTINATION = 'https://example.com/secret'

async function limitedLink(app: TestApp, max_hits = 2): Promise<void> {
  await app.claim('LIMITED26', DESTINATION)
  await app.call('PATCH', '/api/links/LIMITED26', { key: 'free', json: { max_hits } })
}

const hitsOf = async (app: TestApp) =>
  (await app.call('GET', '/api/lookup/LIMITED26')).body.hit_count

const PREVIEWS = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0',
  'WhatsApp/2.23.20.0',
  'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
  'TelegramBot (like TwitterBot)',
  'Twitterbot/1.0',
  'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)',
  'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)',
  'LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)',
  'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5',
]
const PREFETCHES = [
  { 'sec-purpose': 'prefetch' },
  { 'sec-purpose': 'prefetch;prerender' },
  { 'sec-purpose': 'prefetch;anonymous-client-ip' },
  { 'sec-purpose': 'prefetch', 'user-agent': 'WhatsApp/2.23.20.0' },
  { purpose: 'prefetch' },
]

test('a browser that fetches a link with max_hits in advance gets 503, which uses up no hit', async () => {
  await using app = await testApp()
  await limitedLink(app)
  for (const headers of PREFETCHES) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await app.call(method, '/limited26', { headers })
      expect([headers, answer.status]).toEqual([headers, 503])
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('location')).toBeNull()
      expect(answer.text).not.toContain('secret')
    }
  }
  const { body, headers } = await app.call('GET', '/LIMITED26', { headers: PREFETCHES[0] ?? {} })
  expect(body).toEqual({
    error: expect.any(String),
    request_id: headers.get('x-request-id') as string,
  })
  expect(await hitsOf(app)).toBe(0)
  expect((await app.call('GET', '/LIMITED26')).headers.get('location')).toBe(DESTINATION)
  expect(await hitsOf(app)).toBe(1)
})

test('an app that previews a link with max_hits gets a page without the destination', async () => {
  await using app = await testApp()
  await limitedLink(app)
  for (const agent of PREVIEWS) {
    for (const method of ['GET', 'HEAD']) {
      const headers = { 'user-agent': agent, 'accept-language': 'de' }
      const answer = await app.call(method, '/LIMITED26', { headers })
      expect([agent, answer.status]).toEqual([agent, 200])
      expect(answer.headers.get('content-type')).toBe('text/html;charset=utf-8')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('location')).toBeNull()
      expect(answer.headers.get('vary')).toContain('User-Agent')
      if (method === 'GET') expect(answer.text).toContain('<h1>Kurzlink</h1>')
      expect(answer.text + JSON.stringify([...answer.headers])).not.toContain('example.com')
    }
  }
  expect(await hitsOf(app)).toBe(0)
})

test('programs and other bots follow a link with max_hits, and count', async () => {
  const agents = ['curl/8.5.0', 'Go-http-client/1.1', 'Googlebot/2.1', 'GPTBot/1.2', '']
  await using app = await testApp()
  await limitedLink(app, agents.length)
  for (const [n, agent] of agents.entries()) {
    const answer = await app.call('GET', '/LIMITED26', { headers: { 'user-agent': agent } })
    expect([agent, answer.status, answer.headers.get('location')]).toEqual([
      agent,
      302,
      DESTINATION,
    ])
    expect(await hitsOf(app)).toBe(n + 1)
  }
  for (const agent of [...agents, ...PREVIEWS]) {
    const answer = await app.call('GET', '/LIMITED26', { headers: { 'user-agent': agent } })
    expect([agent, answer.status]).toEqual([agent, 410])
  }
  for (const headers of PREFETCHES) {
    expect((await app.call('GET', '/LIMITED26', { headers })).status).toBe(410)
  }
})

test('links without max_hits are followed by everyone, as before', async () => {
  await using app = await testApp()
  await app.claim('LIMITED26', DESTINATION)
  const requests = [...PREFETCHES, ...PREVIEWS.map((agent) => ({ 'user-agent': agent }))]
  for (const headers of requests) {
    const answer = await app.call('GET', '/LIMITED26', { headers: { ...headers } })
    expect([headers, answer.headers.get('location')]).toEqual([headers, DESTINATION])
  }
  expect(await hitsOf(app)).toBe(requests.length)
})
