import { expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'

/** The spec's row "422 destination host on the abuse blocklist", and design 4.14. */

const BLOCKED = 'Destination URL is not allowed (host on abuse blocklist)'

/** Their formats are in src/blocklist/parse.test.ts. */
const LISTS = {
  'hosts.txt': ['# A hosts file.', '0.0.0.0 first.bad.example second.bad.example'],
  'plain.txt': ['plain.bad.example', 'bücher.example', '192.0.2.7'],
}

function writeLists(dir: string): string {
  const files = Object.entries(LISTS).map(([name, lines]) => {
    writeFileSync(join(dir, name), lines.join('\n'))
    return join(dir, name)
  })
  return files.join(', ')
}

const shorten = (app: TestApp, url: string, key = 'enterprise') =>
  app.call('POST', '/api/shorten', { key, json: { url } })

const blockedUrls = [
  ...['first', 'second', 'plain'].flatMap((name) => [
    `https://${name}.bad.example`,
    `http://deep.er.${name}.bad.example/other?path#here`,
  ]),
  'https://www.xn--bcher-kva.example/',
  'http://192.0.2.7/',
]
/** Disguises and neighbours are in src/blocklist/watch.evasion.test.ts. */
const allowedUrls = ['https://good.example/', 'https://bad.example/', 'http://192.0.2.70/']

// spec: Errors | 422 destination host on the abuse blocklist
// spec: POST /api/shorten | Errors 422
// design: 4.14 blocklist
test('shorten refuses a host on any list and all below it with 422, however the URL writes it, and stores nothing', async () => {
  using lists = temporaryFolder()
  await using app = await testApp({ env: { BLOCKLIST_FILES: writeLists(lists.path) } })
  for (const url of blockedUrls) {
    const { status, body, headers } = await shorten(app, url)
    expect([url, status, body]).toEqual([url, 422, { error: BLOCKED }])
    expect(headers.get('x-ratelimit-limit')).toBe('6000')
    expect(headers.get('retry-after')).toBeNull()
  }
  expect((await app.call('GET', '/api/list', { key: 'enterprise' })).body.total).toBe(0)
  for (const url of allowedUrls) {
    const { status, body } = await shorten(app, url)
    expect([url, status, body.url]).toEqual([url, 201, url])
  }
})

// design: 4.14 to prevent loops
test('a link to the address on which the service listens is refused: it would loop', async () => {
  await using app = await testApp()
  const { port } = new URL(app.url)
  const forms = ['127.0.0.1', 'localhost', '127.1', '[::1]', '0.0.0.0', '[::ffff:127.0.0.1]']
  for (const host of forms) {
    const { status, body } = await shorten(app, `http://${host}:${port}/LOOP0001`)
    expect([host, status, body]).toEqual([host, 422, { error: BLOCKED }])
  }
  const { code, passcode } = await app.claim('LOOP0001')
  const json = { code, passcode, url: `${app.url}/LOOP0001` }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(422)
  expect((await shorten(app, 'http://127.0.0.1:9/other')).status).toBe(201)
})

test('a URL of the service itself is refused in words that say so, and the log says it', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const { code } = await app.shorten('https://example.com/', 'enterprise')
  for (const form of [{}, { code: 'OWNHOST1' }]) {
    const { status, text } = await ann.post('/app/links', {
      ...form,
      url: `http://hop.test/${code}`,
    })
    expect([status, text]).toEqual([422, expect.stringContaining('an address of this service')])
    expect(text).not.toContain('blocklist')
  }
  expect((await app.call('GET', '/api/lookup/OWNHOST1')).status).toBe(404)
  const urls = `http://hop.test/${code}\nhttps://example.com/other`
  const { text } = await ann.post('/app/links/bulk', { urls })
  expect(text).toContain('an address of this service')
  expect(text).not.toContain('blocklist')
  const hosts = app.log
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'destination.own_host')
  expect(hosts[0]).toMatchObject({ level: 'info', host: 'hop.test' })
})

/** In one step: a reader sees the old file or the new one. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

const isBlocked = async (app: TestApp, url: string) => (await shorten(app, url)).status === 422

// design: 4.14 reloaded when they change
test('a changed list is active within seconds: what it adds is refused, what it drops is allowed', async () => {
  using lists = temporaryFolder()
  const file = join(lists.path, 'list.txt')
  writeFileSync(file, 'one.example\n')
  await using app = await testApp({
    env: { BLOCKLIST_FILES: file, ENTERPRISE_WRITES_PER_MINUTE: '0' },
  })
  const { body } = await shorten(app, 'https://two.example/')
  expect(await isBlocked(app, 'https://one.example/')).toBe(true)
  writeFileSync(file, 'two.example\n')
  // The account has this URL already: a blocked one is refused all the same.
  await eventually('two.example is blocked', () => isBlocked(app, 'https://two.example/'))
  expect(await isBlocked(app, 'https://one.example/')).toBe(false)
  const follow = async () => (await app.call('GET', `/${body.code}`)).status
  await eventually('visitors get 410', async () => (await follow()) === 410)
  replace(file, 'one.example\n')
  await eventually('one.example is blocked', () => isBlocked(app, 'https://one.example/'))
  expect(await isBlocked(app, 'https://two.example/')).toBe(false)
})
