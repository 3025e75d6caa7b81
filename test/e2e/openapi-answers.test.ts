import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallOptions, JSON_TYPE, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/broken-database.ts'
import {
  BEYOND_THE_SPEC,
  ENDPOINTS,
  type Endpoint,
  nameOf,
  pathOf,
  WITH_KEY,
  WRITES,
} from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { addKey } from '../support/members.ts'
import { disableLink } from '../support/moderation.ts'
import { describeApi } from '../support/openapi.ts'

/** Whether the service answers as its own description says. */

const url = 'https://example.com/'
const passcode = 'A'.repeat(24)
const code = 'SPRING26'

const ALL = [...ENDPOINTS, ...BEYOND_THE_SPEC]
const hasBody = ({ method }: Endpoint) => method !== 'GET'

// spec: GET /api/qr/{code} | Response 200 for PNG
// spec: GET /qr/{code} | Response 302
// spec: GET /{code} | Response 302
test('the headers that the contract gives word for word are given so', async () => {
  await using app = await testApp({ env: { CDN_URL: 'https://cdn.test/images' } })
  const { code } = await app.shorten(url)
  const image = await app.call('GET', `/api/qr/${code}`)
  expect(image.status).toBe(200)
  expect(Object.fromEntries(image.headers)).toMatchObject({
    'content-type': 'image/png',
    'cache-control': 'public, max-age=86400, immutable',
  })
  const stored = await app.call('GET', `/qr/${code}`)
  expect(stored.status).toBe(302)
  expect(Object.fromEntries(stored.headers)).toMatchObject({
    location: `https://cdn.test/images/qr/${code}.png`,
    'cache-control': 'public, max-age=31536000, immutable',
  })
  const followed = await app.call('GET', `/${code}`)
  expect(followed.status).toBe(302)
  expect(Object.fromEntries(followed.headers)).toMatchObject({
    location: url,
    'cache-control': 'no-store',
    'x-service-code': code,
  })
})

// spec: Errors | All error responses are JSON
// spec: What the service does | Request and response bodies are JSON
test('every answer is as documented, and every documented answer can happen', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, 'blocked.example\n')
  // One link in memory: of any other that is held, the database has to tell.
  const env = {
    BLOCKLIST_FILES: list,
    ENTERPRISE_WRITES_PER_MINUTE: '1',
    ENTERPRISE_READS_PER_MINUTE: '1',
    LINK_CACHE_MAX: '1',
    FREE_LINKS_MAX: '2',
    IMPORT_ALIASES: 'all',
  }
  await using app = await testApp({ env })
  const api = await describeApi(app)
  const faults: string[] = []
  const see = async (name: string, options: CallOptions = {}, path = name.split(' ')[1]) => {
    const sent = name === 'POST /api/import' ? asLine(options) : options
    const answer = await app.call(name.split(' ')[0] ?? '', path ?? '', { key: 'pro', ...sent })
    faults.push(...api.faultsOf(name, answer))
    return answer.body
  }
  await seeSuccesses(see)
  const reader = addKey(app, 'pro@example.com', { name: 'Reader', scope: 'read' })
  for (const endpoint of ALL.filter(hasBody)) {
    await see(nameOf(endpoint), { json: {}, key: reader }, pathOf(endpoint))
  }
  await seeRefusals(see)
  await app.claim('DISABLED', url, 'pro-2')
  await disableLink(app, 'DISABLED', 'Reported')
  await see('GET /{code}', { key: 'enterprise-2' }, '/DISABLED')

  for (const endpoint of ALL) {
    for (let i = 0; i < 2; i++) {
      const json = hasBody(endpoint) ? { json: { url, urls: [url] } } : {}
      await see(nameOf(endpoint), { ...json, key: 'enterprise' }, pathOf(endpoint))
    }
  }
  app.maintenance(app.now() + 60_000)
  for (const endpoint of ALL.filter(({ duringMaintenance }) => !duringMaintenance)) {
    await see(nameOf(endpoint), hasBody(endpoint) ? { json: {} } : {}, pathOf(endpoint))
  }
  app.maintenance(undefined)
  await app.claim('UNCACHED')
  await app.claim('CACHED26')
  await see('POST /api/reserve', { key: 'free', json: { code: 'THIRD26' } })
  using _broken = breakDatabase(app.dataDir)
  for (const endpoint of ALL) {
    const json = { code: 'UNCACHED', passcode, url: 'https://example.com/new', urls: [url] }
    const options = hasBody(endpoint) ? { json: endpoint.method === 'POST' ? json : {} } : {}
    await see(nameOf(endpoint), options, pathOf(endpoint, 'UNCACHED'))
  }
  // The one failure of the status that can be brought about is a 503, and the hits and
  // visits of an account are in pages that the reader thread has in memory.
  const unseen = ['GET /api/hits 500', 'GET /api/status 500', 'GET /api/visits 500']
  expect({ faults, unseen: api.unseen().sort() }).toEqual({ faults: [], unseen })
})

type See = (name: string, options?: CallOptions, path?: string) => Promise<Record<string, unknown>>

/** The body as a line of JSON. */
const asLine = ({ json, ...options }: CallOptions): CallOptions => ({
  headers: { 'content-type': 'application/x-ndjson' },
  ...(json !== undefined && { raw: JSON.stringify(json) }),
  ...options,
})

async function seeSuccesses(see: See): Promise<void> {
  const created = await see('POST /api/shorten', { json: { url } })
  await see('POST /api/shorten', { json: { url } })
  const reserved = await see('POST /api/reserve', { json: { code } })
  const urls = [url, 'https://example.com/bulk', 'nonsense', 'http://blocked.example/', 5]
  await see('POST /api/bulk-shorten', { json: { urls } })
  for (const one of [String(created.code), code]) {
    await see('GET /api/lookup/{code}', {}, `/api/lookup/${one}`)
    await see('GET /api/qr/{code}', {}, `/api/qr/${one}`)
    await see('GET /api/qr/{code}', {}, `/api/qr/${one}?format=svg`)
    await see('GET /qr/{code}', {}, `/qr/${one}`)
    await see('GET /api/qr-image/{code}', {}, `/api/qr-image/${one}`)
    await see('GET /{code}', {}, `/${one}`)
  }
  for (const query of ['', '?limit=1&offset=1', '?search=nothing']) {
    await see('GET /api/list', {}, `/api/list${query}`)
  }
  for (const query of ['', '?by=hour&from=2026-02-28T10:00:00Z']) {
    await see('GET /api/hits', {}, `/api/hits${query}`)
    await see('GET /api/links/{code}/hits', {}, `/api/links/${code}/hits${query}`)
  }
  for (const format of ['json', 'csv']) {
    const query = `?by=device&format=${format}`
    await see('GET /api/visits', {}, `/api/visits${query}`)
    await see('GET /api/links/{code}/visits', {}, `/api/links/${code}/visits${query}`)
  }
  await see('POST /api/import', { json: { url, aliases: ['not-allowed'] } })
  for (const query of ['', '?format=csv']) await see('GET /api/export', {}, `/api/export${query}`)
  await see('GET /api/status')
  const json = { code, passcode: reserved.passcode, url: 'https://example.com/now' }
  await see('POST /api/update', { json })
  await see('POST /api/update', { json: { ...json, url: 'http://blocked.example/' } })
  const path = `/api/links/${code}`
  await see('GET /api/links/{code}', {}, path)
  await see('PATCH /api/links/{code}', { json: PROPERTIES }, path)
  await see('GET /api/links/{code}', {}, path)
  await see('PATCH /api/links/{code}', { json: { expired_url: 'http://blocked.example/' } }, path)
  await see('PATCH /api/links/{code}', { json: { aliases: ['api/status'] } }, path)
  await see('POST /api/delete', { json })
}

const PROPERTIES = {
  title: 'Poster',
  note: null,
  tags: ['spring'],
  starts_at: '2026-03-01T12:00:00.000Z',
  max_hits: 5,
  expired_url: url,
}

async function seeRefusals(see: See): Promise<void> {
  const tooLong = ' '.repeat(32 * 1024 * 1024 + 1)
  for (const endpoint of [...WRITES, ...BEYOND_THE_SPEC.filter(hasBody)]) {
    const name = nameOf(endpoint)
    const path = pathOf(endpoint)
    await see(name, { json: {} }, path)
    await see(name, { raw: '{', headers: { 'content-type': JSON_TYPE } }, path)
    await see(name, { raw: '{}' }, path)
    await see(name, { raw: tooLong, headers: { 'content-type': JSON_TYPE } }, path)
  }
  for (const endpoint of [...WITH_KEY, ...BEYOND_THE_SPEC]) {
    const json = hasBody(endpoint) ? { json: {} } : {}
    await see(nameOf(endpoint), { ...json, key: 'nonsense' }, pathOf(endpoint))
  }
  const blocked = 'http://blocked.example/'
  await see('POST /api/shorten', { json: { url: blocked } })
  await see('POST /api/bulk-shorten', { json: { urls: [blocked] } })
  await see('POST /api/reserve', { json: { code: 'SUMMER26' } })
  await see('POST /api/reserve', { json: { code: 'SUMMER26' } })
  await see('POST /api/update', { json: { code, passcode, url } })
  await see('POST /api/delete', { json: { code, passcode } })
  for (const path of ['/api/lookup', '/api/qr', '/qr', '/api/qr-image', '']) {
    for (const asked of ['UNKNOWN1', 'not-a-code']) {
      await see(`GET ${path}/{code}`, {}, `${path}/${asked}`)
    }
  }
  await see('GET /api/qr/{code}', {}, '/api/qr/UNKNOWN1?size=1')
  await see('GET /api/list', {}, '/api/list?limit=0')
  await see('GET /api/export', {}, '/api/export?format=xml')
  await see('POST /api/import', { raw: '' })
  await see('POST /api/import', {
    raw: ' '.repeat(32 * 1024 * 1024 + 1),
    headers: { 'content-type': 'application/x-ndjson' },
  })
  await see('GET /api/links/{code}', {}, '/api/links/UNKNOWN1')
  await see('GET /api/hits', {}, '/api/hits?by=week')
  await see('GET /api/links/{code}/hits', {}, '/api/links/UNKNOWN1/hits?by=week')
  await see('GET /api/links/{code}/hits', {}, '/api/links/UNKNOWN1/hits')
  await see('GET /api/visits', {}, '/api/visits?by=ip')
  await see('GET /api/links/{code}/visits', {}, '/api/links/UNKNOWN1/visits?by=ip')
  await see('GET /api/links/{code}/visits', {}, '/api/links/UNKNOWN1/visits?by=os')
}
