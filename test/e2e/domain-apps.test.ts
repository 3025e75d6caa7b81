import { expect, test } from 'bun:test'
import { type AppFiles, setDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { domainCommands } from '../../src/cli/domains.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { add, appWithDomains, GO, get, OLD, PRIMARY, refusalOf } from '../support/domains.ts'

/** Files below /.well-known/ of each domain. */

const APPLE = '/.well-known/apple-app-site-association'
const ANDROID = '/.well-known/assetlinks.json'
const CONTACT = '/.well-known/security.txt'

const FINGERPRINT = Array.from({ length: 32 }, () => 'A0').join(':')
const android = JSON.stringify([
  {
    relation: ['delegate_permission/common.handle_all_urls'],
    target: {
      namespace: 'android_app',
      package_name: 'com.example.app',
      sha256_cert_fingerprints: [FINGERPRINT],
    },
  },
])
/** `bytes`: the length of the file. */
function apple(name: string, bytes = 0): string {
  const details = [{ appIDs: [`ABCDE12345.com.example.${name}`], components: [{ '/': '/*' }] }]
  const text = JSON.stringify({ applinks: { details } })
  return text + ' '.repeat(Math.max(0, bytes - text.length))
}

const setFiles = (app: TestApp, host: string, files: AppFiles) =>
  setDomain(app.administration, operatorOf(app.administration), { host, ...files })

test('each domain has its own files, the primary one too, without a redirect', async () => {
  await using app = await appWithDomains()
  for (const path of [APPLE, ANDROID]) {
    for (const host of [PRIMARY, GO, OLD]) {
      const { status, headers } = await get(app, host, path)
      expect([host, status, headers.get('cache-control')]).toEqual([host, 404, 'no-store'])
    }
  }
  await setFiles(app, PRIMARY, { apple: apple('primary') })
  await setFiles(app, GO, { apple: apple('go'), android })
  const files = [
    [PRIMARY, APPLE, apple('primary')],
    [GO, APPLE, apple('go')],
    [GO, ANDROID, android],
  ] as const
  for (const [host, path, text] of files) {
    const found = await get(app, host, path)
    expect([host, path, found.status, found.text]).toEqual([host, path, 200, text])
    expect(found.headers.get('content-type')).toBe('application/json')
    expect(found.headers.get('cache-control')).toContain('max-age=3600')
    expect(found.headers.get('x-content-type-options')).toBe('nosniff')
    const head = await app.call('HEAD', path, { headers: { host } })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers.get('content-type')).toBe('application/json')
    expect(head.headers.get('content-length')).toBe(String(text.length))
  }
  for (const [host, path] of [
    [PRIMARY, ANDROID],
    [OLD, APPLE],
  ] as const) {
    expect([host, path, (await get(app, host, path)).status]).toEqual([host, path, 404])
  }
  expect((await get(app, 'evil.example', APPLE)).status).toBe(421)
  await setFiles(app, GO, { apple: null })
  expect((await get(app, GO, APPLE)).status).toBe(404)
  expect((await get(app, GO, ANDROID)).status).toBe(200)
})

test('a file of 128 KiB is served in full, and compressed to clients that accept it', async () => {
  await using app = await appWithDomains()
  const text = apple('large', 128 * 1024)
  for (const host of [PRIMARY, GO]) {
    await setFiles(app, host, { apple: text })
    const plain = await get(app, host, APPLE, { headers: { 'accept-encoding': 'identity' } })
    expect([host, plain.text === text, plain.headers.get('vary')]).toEqual([
      host,
      true,
      expect.stringMatching(/accept-encoding/i),
    ])
    const url = `${app.url}${APPLE}`
    const packed = await fetch(url, {
      headers: { host, 'accept-encoding': 'gzip' },
      decompress: false,
    })
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    const bytes = new Uint8Array(await packed.arrayBuffer())
    expect(bytes.length).toBeLessThan(4096)
    expect(Buffer.from(Bun.gunzipSync(bytes)).toString() === text).toBe(true)
  }
})

test('a file of 129 KiB, or without the keys of its maker, is refused and changes nothing', async () => {
  await using app = await appWithDomains()
  await setFiles(app, GO, { apple: apple('go') })
  const bad = [
    [{ apple: apple('x', 129 * 1024) }, '129 KiB'],
    [{ apple: apple('x'), android: '[]' }, 'assetlinks.json'],
    [{ apple: '{"applinks": {}}' }, 'applinks.details'],
    [{ apple: '' }, 'JSON'],
  ] as const
  for (const [files, named] of bad) {
    expect(await refusalOf(setFiles(app, GO, files))).toContain(named)
  }
  expect(await refusalOf(setFiles(app, 'no.example', { android }))).toContain('no.example')
  const settings = { host: PRIMARY, codes: 'all' as const }
  const { administration } = app
  const refused = setDomain(administration, operatorOf(administration), settings)
  expect(await refusalOf(refused)).toContain('BASE_URL')
  expect((await get(app, GO, APPLE)).text).toBe(apple('go'))
})

test('an app file leaves the other settings of a domain, and is gone with it', async () => {
  await using app = await testApp()
  await add(app, { host: GO, for: 'all', rootUrl: 'https://brand.example/' })
  const { administration } = app
  await domainCommands.setDomain(administration, { host: GO, apple: apple('go') })
  const listed = await domainCommands.listDomains(administration, { json: true })
  expect(JSON.parse(listed)).toMatchObject({
    root_url: 'https://brand.example/',
    for: 'all',
    apps: ['apple'],
  })
  await domainCommands.removeDomain(administration, { host: GO })
  await add(app, { host: GO })
  expect((await get(app, GO, APPLE)).status).toBe(404)
  const rows = app.administer(({ db }) => db.query('SELECT * FROM app_files').all())
  expect(rows).toEqual([])
})

test('app files are charged as reads, and answered during maintenance', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  await setFiles(app, PRIMARY, { android })
  app.maintenance(app.now() + 60_000)
  const statuses = []
  for (let n = 0; n < 3; n++) statuses.push((await app.call('GET', ANDROID)).status)
  expect(statuses).toEqual([200, 200, 429])
})

test.each([
  ['security@example.com', 'mailto:security@example.com'],
  ['https://example.com/report', 'https://example.com/report'],
])('security.txt has the contact %s and expires within a year', async (contact, uri) => {
  await using app = await appWithDomains({ OPERATOR_CONTACT: contact })
  for (const host of [PRIMARY, GO]) {
    const { status, headers, text } = await get(app, host, CONTACT)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    const fields = Object.fromEntries(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split(': ')),
    )
    expect(Object.keys(fields)).toEqual(['Contact', 'Expires'])
    expect(fields.Contact).toBe(uri)
    const days = (Date.parse(fields.Expires) - app.now()) / (24 * 3600 * 1000)
    expect([days > 30, days < 365]).toEqual([true, true])
  }
})

const PAGE = (host: string) => `/app/service/domains/${host}/apps`

/** Sends the form with a file, as a browser does. */
async function upload(app: TestApp, owner: Visitor, host: string, file: string) {
  const body = new FormData()
  body.set('csrf', (await owner.get(PAGE(host))).csrf)
  body.set('apple', '')
  body.set('android', '')
  body.set('android_file', new File([file], 'assetlinks.json'))
  body.set('apple_file', new File([], ''))
  const headers = { cookie: owner.cookie, 'sec-fetch-site': 'same-origin' }
  return fetch(app.url + PAGE(host), { method: 'POST', body, headers, redirect: 'manual' })
}

test('an owner pastes, uploads, sees and removes the files of a domain', async () => {
  await using app = await appWithDomains()
  const { owner } = await setUpOwner(app)
  for (const host of [PRIMARY, GO]) {
    const page = PAGE(host)
    expect((await owner.get('/app/service/domains')).text).toContain(PAGE(PRIMARY))
    const pasted = await owner.post(page, { apple: apple(host.slice(0, 2)), android: '' })
    expect([pasted.status, pasted.location]).toEqual([303, `${page}?done=saved`])
    expect((await get(app, host, APPLE)).text).toBe(apple(host.slice(0, 2)))
    expect((await owner.get(page)).text).toContain(`ABCDE12345.com.example.${host.slice(0, 2)}`)
    const bad = await owner.post(page, { apple: '{"applinks": []}', android: 'x' })
    expect([bad.status, bad.invalid]).toEqual([422, ['apple']])
    const large = await owner.post(page, { apple: '', android: apple('x', 129 * 1024) })
    expect([large.status, large.invalid]).toEqual([422, ['android']])
    expect((await get(app, host, APPLE)).status).toBe(200)
    expect((await upload(app, owner, host, android)).status).toBe(303)
    expect((await get(app, host, ANDROID)).text).toBe(android)
    expect((await get(app, host, APPLE)).status).toBe(404)
  }
  expect((await owner.get(PAGE(GO))).text).toContain('destination of a redirect')
  expect((await owner.get(PAGE('no.example'))).status).toBe(404)
})
