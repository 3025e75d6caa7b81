import { describe, expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'

/** The spec's row "422 destination host on the abuse blocklist", and design 4.14. */

const BLOCKED = 'Destination URL is not allowed (host on abuse blocklist)'
const PASSCODE = 'A'.repeat(24)

const LISTS = {
  'hosts.txt': [
    '# A hosts file.',
    '127.0.0.1 localhost',
    '::1 localhost ip6-localhost ip6-loopback',
    '0.0.0.0 0.0.0.0',
    '0.0.0.0 hosts.bad.example',
    '127.0.0.1\ttab.bad.example\t# a comment',
    '0.0.0.0 first.bad.example second.bad.example',
  ],
  'plain.txt': ['# Domains.', '', 'plain.bad.example', 'UPPER.Bad.Example', 'bücher.example'],
  'windows.txt': ['crlf.bad.example\r', '192.0.2.7\r', ''],
  'adblock.txt': [
    '[Adblock Plus 2.0]',
    '! Title: A list',
    '||adblock.bad.example^',
    'good.example##.banner',
  ],
  'urlhaus.txt': [
    '# abuse.ch URLhaus plain-text URL list',
    'http://urlhaus.bad.example/malware.exe',
    'https://198.51.100.9:8443/bin.sh',
  ],
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
  ...['hosts', 'tab', 'first', 'second', 'plain', 'upper', 'crlf', 'adblock', 'urlhaus'].flatMap(
    (name) => [`https://${name}.bad.example`, `http://deep.er.${name}.bad.example/other?path#here`],
  ),
  'HTTPS://PLAIN.BAD.EXAMPLE/',
  'https://plain.bad.example./',
  'http://plain.bad.example:8080/',
  'https://good.example@plain.bad.example/',
  'https://user:pw@plain.bad.example:443/',
  'https://plain%2Ebad%2eexample/',
  'https://ｐｌａｉｎ.bad.example/',
  'https://bücher.example/',
  'https://www.xn--bcher-kva.example/',
  'http://192.0.2.7/',
  'http://3221225991/',
  'http://0xc0.0.02.7:81/x',
  'http://198.51.100.9/another',
]
const allowedUrls = [
  'https://good.example/',
  'https://bad.example/',
  'https://xplain.bad.example/',
  'https://plain.bad.example.org/',
  'https://plain-bad.example/',
  'https://good.example/?to=https://plain.bad.example/',
  'https://good.example/#plain.bad.example',
  'https://plain.bad.example@good.example/',
  'http://192.0.2.70/',
  'http://2.7/',
]

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

describe('with a blocked host', () => {
  const bad = 'https://plain.bad.example/x'
  const start = (dir: string) => testApp({ env: { BLOCKLIST_FILES: writeLists(dir) } })

  // spec: POST /api/update | Errors 422
  // design: 4.4 order of refusals
  test('update answers 422 only to who may change the code, and leaves the destination as it was', async () => {
    using lists = temporaryFolder()
    await using app = await start(lists.path)
    const { code, passcode } = await app.claim('SPRING26', 'https://good.example/')
    const reserved = await app.reserve('SUMMER26')
    const update = async (json: object, key = 'free') => {
      const { status, body } = await app.call('POST', '/api/update', { key, json })
      return [status, body]
    }
    const forbidden = { error: `Invalid passcode for code ${code}` }
    expect(await update({ code, passcode, url: bad })).toEqual([422, { error: BLOCKED }])
    expect(await update({ ...reserved, url: bad })).toEqual([422, { error: BLOCKED }])
    expect(await update({ code, passcode: PASSCODE, url: bad })).toEqual([403, forbidden])
    expect(await update({ code, passcode, url: bad }, 'pro')).toEqual([403, forbidden])
    const missing = { error: 'Missing required field: passcode' }
    expect(await update({ code, url: bad })).toEqual([400, missing])
    const visit = await app.call('GET', `/${code}`)
    expect(visit.headers.get('location')).toBe('https://good.example/')
    expect((await app.call('GET', '/SUMMER26')).status).toBe(404)
  })

  // spec: POST /api/bulk-shorten | Errors 422
  // design: 4.7 bulk
  test('bulk fails the blocked items alone, is 422 when all are blocked and 400 when all fail otherwise', async () => {
    using lists = temporaryFolder()
    await using app = await start(lists.path)
    const bulk = (urls: string[]) =>
      app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
    const mixed = await bulk([bad, 'https://good.example/', 'https://a.plain.bad.example/'])
    expect(mixed.status).toBe(201)
    expect(mixed.body).toEqual({
      count: 3,
      results: [
        { ok: false, url: bad, error: BLOCKED },
        expect.objectContaining({ ok: true, url: 'https://good.example/', reused: false }),
        { ok: false, url: 'https://a.plain.bad.example/', error: BLOCKED },
      ],
    })
    const all = await bulk([bad, 'https://a.plain.bad.example/'])
    expect([all.status, all.body]).toEqual([422, { error: BLOCKED }])
    const failed = await bulk([bad, 'ftp://good.example/'])
    const invalid = 'Invalid URL: must start with http:// or https://'
    expect([failed.status, failed.body]).toEqual([400, { error: invalid }])
    const { body } = await app.call('GET', '/api/list', { key: 'free' })
    expect(body).toMatchObject({ total: 1, items: [{ url: 'https://good.example/' }] })
  })

  // design: 4.4 order of refusals
  test('a caller without a valid key gets 401 and no hint of the list', async () => {
    using lists = temporaryFolder()
    await using app = await start(lists.path)
    for (const key of [undefined, '', 'hop_wrong']) {
      const json = { url: bad }
      const options = key === undefined ? { json } : { json, headers: { 'x-api-key': key } }
      const { status, body } = await app.call('POST', '/api/shorten', options)
      expect([status, body]).toEqual([401, { error: 'Invalid or missing API key' }])
    }
  })
})

// design: 4.14 our own hosts
test('our own hosts are blocked on every port and scheme, without any list', async () => {
  const env = { BASE_URL: 'https://Hop.Test', CDN_URL: 'http://192.0.2.80:8080/images' }
  await using app = await testApp({ env })
  const { code } = await app.shorten('https://www.example/')
  for (const url of [
    `https://hop.test/${code}`,
    'http://hop.test/anything',
    'https://HOP.test:8443/',
    'https://hop.test./',
    'https://user@hop.test/',
    'http://192.0.2.80/',
    'https://192.0.592/',
    'http://0xc0000250:9/',
  ]) {
    const { status, body } = await shorten(app, url)
    expect([url, status, body]).toEqual([url, 422, { error: BLOCKED }])
  }
  for (const url of [
    'https://hop.test.example/',
    'https://myhop.test/',
    'https://x.example/hop.test',
  ]) {
    expect([url, (await shorten(app, url)).status]).toEqual([url, 201])
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

// design: 4.14 a broken new file keeps the last good set and says so in the log
test('a list that breaks keeps its last good hosts and says so in the log, until it is good again', async () => {
  using lists = temporaryFolder()
  const breakages = {
    binary: (file: string) => replace(file, 'new.example\n\0\u0001\u0002'),
    page: (file: string) =>
      replace(file, '<!DOCTYPE html>\n<html><body>\nnew.example\n</body></html>\n'),
    gone: (file: string) => rmSync(file),
    folder: (file: string) => {
      rmSync(file)
      mkdirSync(file)
    },
  }
  const rows = Object.entries(breakages).map(([name, spoil]) => {
    const file = join(lists.path, `${name}.txt`)
    writeFileSync(file, `${name}.example\n`)
    return { name, file, spoil }
  })
  const late = join(lists.path, 'late.txt')
  const files = [...rows.map(({ file }) => file), late].join(',')
  const env = { BLOCKLIST_FILES: files, ENTERPRISE_WRITES_PER_MINUTE: '0' }
  await using app = await testApp({ env })
  const complaints = (file: string) =>
    app.log.filter((line) => /"level":"(warn|error)"/.test(line) && line.includes(file))
  expect(complaints(late).length).toBeGreaterThan(0)
  for (const { file, spoil } of rows) {
    expect(complaints(file)).toEqual([])
    spoil(file)
  }
  await eventually('the log names every broken file', () => {
    return rows.every(({ file }) => complaints(file).length > 0)
  })
  for (const { name } of rows) {
    expect([name, await isBlocked(app, `https://${name}.example/`)]).toEqual([name, true])
  }
  expect(await isBlocked(app, 'https://new.example/')).toBe(false)

  rmSync(join(lists.path, 'folder.txt'), { recursive: true })
  for (const { name, file } of rows) replace(file, `new-${name}.example\n`)
  writeFileSync(late, 'late.example\n')
  await eventually('every new list is active', async () => {
    const news = [...rows.map(({ name }) => `new-${name}`), 'late']
    const blocked = await Promise.all(
      news.map((name) => isBlocked(app, `https://${name}.example/`)),
    )
    return !blocked.includes(false)
  })
  for (const { name } of rows) {
    expect([name, await isBlocked(app, `https://${name}.example/`)]).toEqual([name, false])
  }
})
