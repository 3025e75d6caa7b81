import { expect, test } from 'bun:test'
import { type CallOptions, eventually, type TestApp, testApp } from '../support/app.ts'
import { add, GO } from '../support/domains.ts'
import { temporaryFolder } from '../support/folder.ts'
import { addKey } from '../support/members.ts'

/** The API of YOURLS, for tools that ask for its address and a signature. */

const PATH = '/yourls-api.php'
const URL = 'https://example.com/landing'

const asked = (parameters: Record<string, string>): string =>
  `${PATH}?${new URLSearchParams({ format: 'json', ...parameters })}`

/** A request with the key of an account, in the query. */
const ask = (
  app: TestApp,
  parameters: Record<string, string>,
  { key = 'free', ...options }: CallOptions = {},
) => app.call('GET', asked({ signature: app.key(key), ...parameters }), options)

const shorten = (app: TestApp, parameters: Record<string, string> = {}, options?: CallOptions) =>
  ask(app, { action: 'shorturl', url: URL, ...parameters }, options)

test('YOURLS: a URL is shortened, expanded and counted', async () => {
  await using app = await testApp()
  const created = await shorten(app, { keyword: 'Spring26', title: 'Two\nlines' })
  const time = '2026-03-01 12:00:00'
  const about = { url: URL, title: 'Two lines', ip: '' }
  expect(created.status).toBe(200)
  expect(created.body).toMatchObject({
    status: 'success',
    code: '',
    statusCode: '200',
    shorturl: 'http://hop.test/Spring26',
    title: 'Two lines',
    url: { ...about, keyword: 'Spring26', date: time },
  })
  await app.call('GET', '/spring26')
  const link = { ...about, shorturl: 'http://hop.test/Spring26', timestamp: time, clicks: '1' }
  for (const shorturl of ['Spring26', 'http://hop.test/Spring26', 'spring26']) {
    expect((await ask(app, { action: 'expand', shorturl })).body).toEqual({
      keyword: 'Spring26',
      shorturl: 'http://hop.test/Spring26',
      longurl: URL,
      title: 'Two lines',
      message: 'success',
      statusCode: '200',
    })
    const stats = await ask(app, { action: 'url-stats', shorturl })
    expect(stats.body).toEqual({ message: 'success', statusCode: '200', link })
  }
  await app.untilCounted()
  const totals = { total_links: 1, total_clicks: 1 }
  expect((await ask(app, { action: 'db-stats' })).body['db-stats']).toEqual(totals)
  const list = await ask(app, { action: 'stats', filter: 'last', limit: '5' })
  expect(list.body).toMatchObject({ links: { link_1: link }, stats: totals, statusCode: '200' })
  expect((await ask(app, { action: 'version' })).body.version).toMatch(/^1\.\d+\.\d+$/)
})

test('YOURLS: lists begin with the most hits or the newest link, of the account alone', async () => {
  await using app = await testApp()
  for (const word of ['FIRST001', 'SECOND02', 'THIRD003']) {
    await shorten(app, { keyword: word, url: `${URL}/${word}` })
  }
  await shorten(app, { keyword: 'OTHERS04' }, { key: 'pro' })
  await app.call('GET', '/FIRST001')
  await app.untilCounted()
  const words = async (parameters: Record<string, string>) => {
    const { body } = await ask(app, { action: 'stats', ...parameters })
    const links = Object.values((body.links ?? {}) as Record<string, { shorturl: string }>)
    return links.map(({ shorturl }) => shorturl.slice(-8))
  }
  expect(await words({ filter: 'top', limit: '2' })).toEqual(['FIRST001', 'THIRD003'])
  expect(await words({ limit: '2', start: '1' })).toEqual(['THIRD003', 'SECOND02'])
  expect(await words({ filter: 'last', limit: '9' })).toEqual(['THIRD003', 'SECOND02', 'FIRST001'])
  expect(await words({})).toEqual([])
  expect((await ask(app, { action: 'stats', filter: 'rand', limit: '1' })).status).toBe(400)
  for (const action of ['expand', 'url-stats']) {
    const { status, body } = await ask(app, { action, shorturl: 'OTHERS04' })
    expect([status, body.errorCode]).toEqual([404, '404'])
  }
})

test.each<[string, Record<string, string>, number, object]>([
  ['no URL', { url: '' }, 400, { code: 'error:nourl' }],
  ['a malformed URL', { url: 'http://' }, 400, { code: 'error:nourl' }],
  ['a short URL', { url: 'http://hop.test/TAKEN026' }, 400, { code: 'error:noloop' }],
  ['a taken code', { keyword: 'taken026' }, 400, { code: 'error:keyword' }],
  ['a taken alias', { keyword: 'our-menu' }, 400, { code: 'error:keyword' }],
  ['a path of the service', { keyword: 'app/x' }, 400, { code: 'error:keyword' }],
  ['a malformed keyword', { keyword: '../x' }, 400, { code: 'error:keyword' }],
  ['a URL that has a link', { url: 'https://example.com/old' }, 400, { code: 'error:url' }],
])('YOURLS: %s is refused as there', async (_, parameters, status, body) => {
  await using app = await testApp({ env: { ALIASES: 'all' } })
  await shorten(app, { keyword: 'TAKEN026', url: 'https://example.com/old' })
  await shorten(app, { keyword: 'our-menu', url: 'https://example.com/menu' })
  const answer = await shorten(app, parameters)
  expect(answer.status).toBe(status)
  const codes = { status: 'fail', errorCode: String(status), statusCode: String(status) }
  expect(answer.body).toMatchObject({ ...codes, ...body })
  const simple = await shorten(app, { ...parameters, format: 'simple' })
  const isFound = parameters.url === 'https://example.com/old'
  expect([simple.status, simple.text]).toEqual([status, isFound ? 'http://hop.test/TAKEN026' : ''])
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.total).toBe(2)
})

test('YOURLS: what identifies nobody is refused with 403, whatever the action is', async () => {
  await using app = await testApp()
  const key = app.key('free')
  const hashed = new Bun.CryptoHasher('md5').update(`1772366400${key}`).digest('hex')
  for (const [sent, text] of [
    [{}, /^Please log in/],
    [{ signature: 'abcdef0123' }, /^Please log in/],
    [{ signature: `${key}x` }, /^Please log in/],
    [{ username: 'ann', password: 'secret' }, /^Invalid username or password/],
    [{ timestamp: '1772366400', signature: hashed }, /timestamp/],
    [{ timestamp: '1772366400', signature: key }, /timestamp/],
  ] as const) {
    for (const action of ['shorturl', 'expand', 'version', 'nothing']) {
      const answer = await app.call('GET', asked({ ...sent, action, url: URL, shorturl: 'ABCDEF' }))
      expect([sent, action, answer.status]).toEqual([sent, action, 403])
      expect(answer.body).toMatchObject({ errorCode: '403', message: expect.stringMatching(text) })
    }
  }
  // A key in a header is none of YOURLS.
  expect((await app.call('GET', asked({ action: 'version' }), { key: 'free' })).status).toBe(403)
})

test('YOURLS: an unknown action is refused with 400', async () => {
  await using app = await testApp()
  for (const action of ['', 'delete', 'constructor']) {
    const { status, body } = await ask(app, { action })
    expect([action, status, body.errorCode]).toEqual([action, 400, '400'])
  }
})

test('YOURLS: each format has its type, XML is the default, and a callback is a name', async () => {
  await using app = await testApp()
  await shorten(app, { keyword: 'SPRING26', url: `${URL}?a=1&b=<2>`, title: 'Tom & "Jo"' })
  const expand = (parameters: Record<string, string>) =>
    ask(app, { action: 'expand', shorturl: 'SPRING26', ...parameters })
  const xml = await expand({ format: '' })
  expect(xml.headers.get('content-type')).toBe('application/xml;charset=utf-8')
  expect(xml.text).toContain(`<longurl>${URL}?a=1&amp;b=&lt;2&gt;</longurl>`)
  expect(xml.text).toMatch(/^<\?xml [^>]*\?>\n<root>.*<title>Tom &amp; .*<\/root>\n$/)
  const text = await expand({ format: 'simple' })
  expect(text.headers.get('content-type')).toBe('text/plain;charset=utf-8')
  expect(text.text).toBe(`${URL}?a=1&b=<2>`)
  for (const callback of ['done', 'jQuery_1', 'holder[12]']) {
    const { status, headers, text } = await expand({ format: 'jsonp', callback })
    expect([status, headers.get('content-type')]).toEqual([
      200,
      'application/javascript;charset=utf-8',
    ])
    expect(text).toStartWith(`/**/${callback}({"keyword"`)
  }
  for (const callback of [
    '',
    'a.click',
    'alert(1)',
    'a;b',
    'a[b]',
    'x'.repeat(101),
    '<script>',
    'a\u2028b',
  ]) {
    const answer = await expand({ format: 'jsonp', callback })
    expect([callback, answer.status]).toEqual([callback, 400])
    expect(answer.text).not.toContain('SPRING26')
  }
})

test('YOURLS: a form is read as PrivateBin, ShareX and WordPress send it', async () => {
  await using app = await testApp()
  const signature = app.key('free')
  // PrivateBin, lib/Proxy/YourlsProxy.php; WordPress's YOURLS Link Creator sends the same fields.
  const privateBin = await app.call('POST', PATH, {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    raw: new URLSearchParams({
      signature,
      format: 'json',
      action: 'shorturl',
      url: 'https://paste.example/?a81b2c3d4e5f6071#H1kLpQ',
    }).toString(),
  })
  expect(Number(privateBin.body.statusCode)).toBe(200)
  expect(privateBin.body.shorturl).toMatch(/^http:\/\/hop\.test\/\w{8}$/)
  // ShareX, URLShorteners/YourlsURLShortener.cs: multipart/form-data.
  const boundary = '---------------------8dc3ab12f4'
  const parts = Object.entries({ signature, action: 'shorturl', url: URL, format: 'simple' }).map(
    ([name, value]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const shareX = await app.call('POST', PATH, {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    raw: `${parts.join('')}--${boundary}--\r\n`,
  })
  expect([shareX.status, shareX.text]).toEqual([
    200,
    expect.stringMatching(/^http:\/\/hop\.test\//),
  ])
  // A field of the body goes before the query; without a body, the query is all there is.
  const both = await app.call('POST', asked({ signature: 'old', action: 'version' }), {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    raw: `signature=${signature}`,
  })
  expect(both.status).toBe(200)
  expect((await app.call('POST', asked({ signature, action: 'version' }))).status).toBe(200)
  const json = await app.call('POST', asked({ signature, action: 'version' }), { json: {} })
  expect([json.status, json.body.errorCode]).toEqual([415, '415'])
})

test('YOURLS: requests are charged like those for which they stand, also without a key', async () => {
  await using app = await testApp()
  const limitOf = async (parameters: Record<string, string>) =>
    (await ask(app, parameters)).headers.get('x-ratelimit-limit')
  expect(await limitOf({ action: 'shorturl', url: URL })).toBe('60')
  expect(await limitOf({ action: 'expand', shorturl: 'ABCDEF' })).toBe('300')
  for (let left = 59; left > 0; left--) await shorten(app)
  const over = await shorten(app)
  expect([over.status, over.body.errorCode, over.body.status]).toEqual([429, '429', 'fail'])
  expect(over.headers.get('retry-after')).toBe('60')
  expect((await ask(app, { action: 'version' })).status).toBe(200)

  const from = '203.0.113.9'
  const sent = (raw: string) =>
    app.call('POST', PATH, { from, raw, headers: { 'content-type': 'text/plain' } })
  const statuses = []
  for (let n = 0; n < 301; n++) statuses.push((await sent('x')).status)
  expect([statuses[0], statuses.at(-2), statuses.at(-1)]).toEqual([415, 415, 429])
})

test('YOURLS: a key shortens only if its access allows it, and nobody does during maintenance', async () => {
  await using app = await testApp()
  await shorten(app, { keyword: 'SPRING26' })
  const reader = addKey(app, 'free@example.com', { name: 'Reader', scope: 'read' })
  const asReader = (parameters: Record<string, string>) =>
    app.call('GET', asked({ signature: reader, ...parameters }))
  const refused = await asReader({ action: 'shorturl', url: `${URL}/2` })
  expect([refused.status, refused.body.status]).toEqual([403, 'fail'])
  expect((await asReader({ action: 'expand', shorturl: 'SPRING26' })).status).toBe(200)
  app.maintenance(app.now() + 60_000)
  const closed = await shorten(app, { url: `${URL}/3` })
  expect([closed.status, closed.headers.get('retry-after')]).toEqual([503, '60'])
  expect(closed.body.errorCode).toBe('503')
})

test('YOURLS: no line of the log has a key, a password or any other parameter', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const key = app.key('free')
  const unknown = `hop_${'s'.repeat(36)}`
  await shorten(app, { keyword: 'SPRING26' })
  await ask(app, { action: 'expand', shorturl: 'SPRING26' })
  await app.call('GET', asked({ signature: unknown, action: 'version' }))
  await app.call('GET', asked({ username: 'ann', password: 'open-sesame', action: 'version' }))
  await app.call('HEAD', asked({ signature: key, action: 'version' }))
  await app.call('DELETE', asked({ signature: key }))
  await app.call('GET', `${PATH}/x?signature=${key}`)
  const lines = () => app.log.filter((line) => line.includes('"event":"request"'))
  await eventually('a line for each request', () => lines().length >= 7)
  expect(lines().filter((line) => line.includes('"route":"/yourls-api.php"')).length).toBe(5)
  expect(JSON.parse(lines()[0] ?? '')).toMatchObject({ method: 'GET', account_id: 1, status: 200 })
  const log = app.log.join('\n')
  for (const secret of [key, unknown, 'open-sesame', 'signature', 'action=']) {
    expect([secret, log.includes(secret)]).toEqual([secret, false])
  }
})

test('YOURLS and Shlink: with COMPATIBLE_APIS=off their paths are like any others', async () => {
  await using app = await testApp({ env: { COMPATIBLE_APIS: 'off', ALIASES: 'all' } })
  const refused = await ask(app, { action: 'version' })
  expect([refused.status, refused.body]).toEqual([404, { error: 'Code not found: YOURLS-API.PHP' }])
  const paths = ['/rest/health', '/rest/v3/short-urls']
  for (const path of paths) expect((await app.call('GET', path, { key: 'free' })).status).toBe(404)
  await app.claim('SPRING26', URL)
  const aliases = ['rest/menu', 'yourls-api.php']
  const { status } = await app.call('PATCH', '/api/links/SPRING26', {
    key: 'free',
    json: { aliases },
  })
  expect(status).toBe(200)
})

test('aliases below /rest/ that are older than the APIs still redirect, and no new one is accepted', async () => {
  using folder = temporaryFolder()
  const start = (COMPATIBLE_APIS: string) =>
    testApp({ dataDir: folder.path, env: { COMPATIBLE_APIS, ALIASES: 'all' } })
  await using before = await start('off')
  await before.claim('SPRING26', URL)
  const key = before.key('free')
  const patch = (app: TestApp, aliases: string[]) =>
    app.call('PATCH', '/api/links/SPRING26', { key, json: { aliases } })
  await patch(before, ['rest', 'rest/menu'])
  await before.stop()
  await using app = await start('on')
  for (const path of ['/rest', '/rest/menu', '/Rest/Menu']) {
    expect([path, (await app.call('GET', path)).headers.get('location')]).toEqual([path, URL])
  }
  expect((await app.call('GET', '/rest/other')).status).toBe(404)
  expect((await patch(app, ['rest', 'rest/menu', 'note'])).status).toBe(200)
  for (const path of ['rest/new', 'Rest', 'yourls-api.php']) {
    expect([path, (await patch(app, ['rest/menu', path])).status]).toEqual([path, 409])
  }
})

test('YOURLS and Shlink: only the host of BASE_URL answers them', async () => {
  await using app = await testApp()
  await add(app, { host: GO, for: 'all' })
  const headers = { host: GO }
  const yourls = await ask(app, { action: 'version' }, { headers })
  const shlink = await app.call('GET', '/rest/v3/short-urls', { key: 'free', headers })
  expect([yourls.status, shlink.status]).toEqual([404, 404])
})
