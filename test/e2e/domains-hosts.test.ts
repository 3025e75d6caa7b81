import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { addDomain, removeDomain, setDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { Conversation } from '../support/conversation.ts'
import { decodeQr } from '../support/decode-qr.ts'
import {
  add,
  appWithDomains,
  GO,
  get,
  L,
  L_URL,
  M,
  M_URL,
  OLD,
  outcome,
  PRIMARY,
  patch,
  refusalOf,
} from '../support/domains.ts'
import { invalid } from '../support/refusals.ts'

/** Requests and settings by which a link could answer on a domain that is not its own. */

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }

/** The status and the `Location` of the response to a head that fetch would not send. */
async function ask(app: TestApp, head: string): Promise<[number, string | undefined]> {
  using client = await Conversation.open(app.url)
  client.send(`${head}\r\nConnection: close\r\n\r\n`)
  const [told] = await client.answers(1)
  return [told?.status ?? 0, told?.headers.get('location') ?? undefined]
}

describe.each(['1', '2'])('with REDIRECT_THREADS=%s', (threads) => {
  const env = { REDIRECT_THREADS: threads }

  test.each([
    [`GET /${M} HTTP/1.1\r\nHost: ${PRIMARY}\r\nHost: ${GO}`, 400, undefined],
    [`GET /${L} HTTP/1.1\r\nHost: ${GO}\r\nHost: ${GO}`, 400, undefined],
    [`GET /${L} HTTP/1.1\r\nHost: ${GO}, ${PRIMARY}`, 400, undefined],
    [`GET /a/b HTTP/1.1\r\nHost: ${GO}\r\nHost: ${PRIMARY}`, 400, undefined],
    [`GET http://${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}`, 404, undefined],
    [`GET http://${GO}/${L} HTTP/1.1\r\nHost: ${PRIMARY}`, 302, L_URL],
    [`GET http://${PRIMARY}/${M} HTTP/1.1\r\nHost: ${GO}`, 302, M_URL],
    [`GET HTTPS://GO.example:8443/${M} HTTP/1.1\r\nhost: ${PRIMARY}`, 404, undefined],
    [`GET http://${GO}/app HTTP/1.1\r\nHost: ${PRIMARY}`, 404, undefined],
    [`GET ftp://${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}`, 400, undefined],
    [`GET ${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}`, 400, undefined],
    [`GET http://u@${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}`, 400, undefined],
    [`GET /${M} HTTP/1.1\r\nHost: ${GO}\r\nX-Forwarded-Host: ${PRIMARY}`, 404, undefined],
    [`GET /${M} HTTP/1.1\r\nHost: ${GO}\r\nForwarded: host=${PRIMARY}`, 404, undefined],
    [`GET /${M} HTTP/1.1\r\nHost: ${PRIMARY}\r\nX-Forwarded-Host: ${GO}`, 302, M_URL],
    [`GET /${M} HTTP/1.1\r\nHost: g%6f.example`, 404, undefined],
    [`GET /${M} HTTP/1.1\r\nHost: ｇｏ.example`, 404, undefined],
    [`GET /${M} HTTP/1.1\r\nHost:${GO} \t`, 404, undefined],
    [`GET /${M} HTTP/1.0`, 302, M_URL],
    [`GET /${M} HTTP/1.1\r\nHost: [::1]:8080`, 302, M_URL],
    [`GET /${M} HTTP/1.1\r\nHost: other.example`, 302, M_URL],
  ])('%j is answered with %d', async (head, status, location) => {
    await using app = await appWithDomains(env)
    expect(await ask(app, head)).toEqual([status, location])
  })
})

describe.each(['1', '2'])('a target with a host, with REDIRECT_THREADS=%s', (threads) => {
  const FOREIGN = `GET http://${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}\r\n\r\n`
  const OWN = `GET http://${GO}/${L} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  const STATUS = `GET /api/status HTTP/1.1\r\nHost: ${PRIMARY}\r\n\r\n`
  const post = (more: string, body: string) =>
    `POST /api/shorten HTTP/1.1\r\nHost: ${PRIMARY}\r\n${more}\r\n\r\n${body}`
  const CHUNKED = post('Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n')
  const EXPECTING = post('Expect: 100-continue\r\nContent-Length: 5', 'hello')
  const FRAMED = post('Content-Length: 5', 'hello')

  test.each([
    ['in two pieces', [FOREIGN.slice(0, 9), FOREIGN.slice(9)], [404]],
    ['in three pieces', [OWN.slice(0, 5), OWN.slice(5, 14), OWN.slice(14)], [302]],
    ['twice', [FOREIGN + FOREIGN + OWN], [404, 404, 302]],
    ['behind another request', [STATUS + FOREIGN + OWN], [200, 404, 302]],
    ['during another request', [STATUS, FOREIGN, OWN], [200, 404, 302]],
    [
      'between requests without one',
      [`${FOREIGN}${STATUS}${FOREIGN}${STATUS}`],
      [404, 200, 404, 200],
    ],
    ['behind a body with a length', [FRAMED + FOREIGN], [401, 404]],
    ['behind the end of a body', [FRAMED.slice(0, -2), `lo${FOREIGN}${OWN}`], [401, 404, 302]],
    // Where the end of the first request is in doubt, it is the last one of its connection.
    ['behind a body in chunks', [CHUNKED + FOREIGN], [401]],
    ['after a body in chunks', [CHUNKED, FOREIGN], [401]],
    ['behind an expectation', [EXPECTING + FOREIGN], [100, 401]],
    [
      'behind a method of nine letters',
      ['PROPPATCH /x HT', `TP/1.1\r\nHost: a\r\n\r\n${FOREIGN}`],
      [405, 404],
    ],
  ])('goes before Host %s', async (_, pieces, statuses) => {
    await using app = await appWithDomains({ REDIRECT_THREADS: threads })
    using client = await Conversation.open(app.url)
    for (const piece of pieces) {
      client.send(piece)
      await Bun.sleep(20)
    }
    const told = await client.answers(statuses.length)
    expect(told.map(({ status }) => status)).toEqual(statuses)
    if (statuses.length === 1 && pieces[0]?.startsWith('POST')) {
      expect(told[0]?.headers.get('connection')).toBe('close')
      expect((await client.closed()).answers).toHaveLength(1)
      using next = await Conversation.open(app.url)
      next.send(STATUS + OWN)
      expect((await next.answers(2)).map(({ status }) => status)).toEqual([200, 302])
    }
  })

  const SENT = ['/api/shorten', '/app/sign-in', `/${L}`, '/a/b', '/nothing', '/api/nothing']

  test.each(SENT)('a body in chunks to %s ends its connection with a word', async (path) => {
    await using app = await appWithDomains({ REDIRECT_THREADS: threads })
    for (const host of [PRIMARY, GO, 'other.example']) {
      using client = await Conversation.open(app.url)
      client.send(CHUNKED.replace('/api/shorten', path).replace(PRIMARY, host))
      const { answers } = await client.closed()
      expect(answers.map(({ headers }) => [host, headers.get('connection')])).toEqual([
        [host, 'close'],
      ])
    }
  })
})

test('without domains, any Host and any target is answered as before', async () => {
  await using app = await appWithDomains()
  await removeDomain(app.administration, operatorOf(app.administration), {
    host: GO,
    movesLinks: true,
  })
  await removeDomain(app.administration, operatorOf(app.administration), {
    host: OLD,
    movesLinks: true,
  })
  for (const head of [
    `GET /${M} HTTP/1.1\r\nHost: ${PRIMARY}\r\nHost: ${GO}`,
    `GET http://${GO}/${M} HTTP/1.1\r\nHost: ${PRIMARY}`,
  ]) {
    expect(await ask(app, head)).toEqual([302, M_URL])
  }
})

test('two spellings of an internationalized host are one domain', async () => {
  await using app = await appWithDomains()
  const { host } = await add(app, { host: 'Bücher.example', for: 'all' })
  expect(host).toBe('xn--bcher-kva.example')
  expect(await refusalOf(add(app, { host: 'xn--BCHER-kva.example.' }))).toContain(
    'is a domain already',
  )
  expect((await patch(app, L, { domain: 'bücher.EXAMPLE' })).body).toMatchObject({ domain: host })
  for (const line of ['bücher.example', 'BÜCHER.example:80', 'XN--bcher-kva.example.']) {
    expect(await ask(app, `GET /${L} HTTP/1.1\r\nHost: ${line}`)).toEqual([302, L_URL])
    expect(await ask(app, `GET /${M} HTTP/1.1\r\nHost: ${line}`)).toEqual([404, undefined])
  }
})

const BAD_HOSTS = [
  ['hop.test', 'hop.test is the host of BASE_URL'],
  ['HOP.test.', 'hop.test is the host of BASE_URL'],
  ['ＨＯＰ.test', 'hop.test is the host of BASE_URL'],
  [GO, 'go.example is a domain already'],
  ['GO.example:443', 'go.example is a domain already'],
  ['192.0.2.1', 'must be'],
  ['0x7f.1', 'must be'],
  ['[2001:db8::1]', 'must be'],
  ['localhost', 'must be'],
  ['https://x.example', 'must be'],
  ['x.example/path', 'must be'],
  ['x..example', 'must be'],
  ['-x.example', 'must be'],
  ['x_y.example', 'must be'],
  ['', 'must be'],
  [`${'a'.repeat(60)}.${'b'.repeat(60)}.example`, 'at most 92'],
] as const

test.each(BAD_HOSTS)('%j cannot be a domain', async (host, message) => {
  await using app = await appWithDomains()
  expect(await refusalOf(add(app, { host }))).toContain(message)
})

test('there are at most 50 domains', async () => {
  await using app = await appWithDomains()
  for (let n = 3; n <= 50; n++) await add(app, { host: `d${n}.example` })
  expect(await refusalOf(add(app, { host: 'more.example' }))).toContain(
    'there are 50 domains, the maximum',
  )
})

test('the pages of a domain, and destinations of links, are not on a domain of the service', async () => {
  await using app = await appWithDomains()
  for (const url of [
    `https://${GO}/x`,
    `http://${OLD}:81/`,
    `https://${PRIMARY}/app`,
    'https://GO.EXAMPLE./',
  ]) {
    for (const page of [{ rootUrl: url }, { notFoundUrl: url }]) {
      expect(
        await refusalOf(
          setDomain(app.administration, operatorOf(app.administration), { host: OLD, ...page }),
        ),
      ).toContain('itself')
    }
    const json = { url }
    const { status, body } = await app.call('POST', '/api/shorten', { key: 'free', json })
    expect([url, status]).toEqual([url, 422])
    expect(body.error).toBeString()
  }
  for (const url of ['javascript:alert(1)', 'x', `https://example.com/${'x'.repeat(2048)}`]) {
    expect(
      await refusalOf(
        setDomain(app.administration, operatorOf(app.administration), { host: GO, rootUrl: url }),
      ),
    ).toContain('root_url')
  }
  // A page may become one of the service by a later domain.
  await setDomain(app.administration, operatorOf(app.administration), {
    host: GO,
    rootUrl: 'https://late.example/',
    notFoundUrl: 'https://late.example/',
  })
  expect(await outcome(app, GO, '/')).toEqual([302, 'https://late.example/'])
  await app.claim('LATE01', 'https://late.example/x')
  expect((await get(app, PRIMARY, '/LATE01')).status).toBe(302)
  await add(app, { host: 'late.example' })
  expect((await get(app, GO, '/')).status).toBe(404)
  expect((await get(app, PRIMARY, '/LATE01')).status).toBe(410)
})

test('reserved paths are no aliases on any domain', async () => {
  await using app = await appWithDomains()
  for (const path of [
    'api',
    'app',
    'APP/x',
    '.well-known/x',
    'ads.txt',
    'qr',
    'cdn',
    'docs',
    '-',
  ]) {
    const { status, body } = await patch(app, L, { domain_aliases: { [GO]: [path] } })
    expect([path, status, body.error]).toEqual([path, 400, invalid('domain_aliases')])
  }
})

test('the displayed address may be an alias on any domain', async () => {
  await using app = await appWithDomains()
  const { body } = await patch(app, L, {
    aliases: ['card'],
    domain_aliases: { [GO]: ['menu'], [OLD]: ['speisen/karte'] },
  })
  expect(body).toMatchObject({
    short_url: `http://${GO}/${L}`,
    display_url: `http://${GO}/menu`,
    display_alias: null,
  })
  const shown = async (display_alias: string | null) =>
    (await patch(app, L, { display_alias })).body.display_url
  expect(await shown('card')).toBe(`http://${PRIMARY}/card`)
  expect(await shown(`//${OLD}/speisen/karte`)).toBe(`http://${OLD}/speisen/karte`)
  expect(await shown(null)).toBe(`http://${GO}/menu`)
  expect((await patch(app, L, { domain: null })).body.display_url).toBe(`http://${PRIMARY}/card`)
  const wrong = await patch(app, L, { display_alias: `//${GO}/card` })
  expect(wrong.status).toBe(400)
})

test('pages for visitors of a domain use no file of the primary domain, which it does not have', async () => {
  const logo = join(import.meta.dir, '../../docs/quick-start.png')
  await using app = await appWithDomains({ OPERATOR_NAME: 'Acme', OPERATOR_LOGO: logo })
  await patch(app, L, { password: 'open sesame' })
  const headers = { 'sec-fetch-dest': 'document' }
  const files = /(?:src="|url\()[^")]*/g
  for (const path of ['/unknown', `/${L}`]) {
    const there = await get(app, GO, path, { headers })
    expect([path, there.text.match(files), there.text.includes('Acme')]).toEqual([path, null, true])
    const primary = await get(app, PRIMARY, path, { headers })
    expect([path, primary.text.match(files)?.length]).toEqual([path, 2])
  }
})

test('a name that is no domain answers the short links of the primary one, and nothing else', async () => {
  const env = { CDN_URL: 'https://img.example', ROOT_URL: 'https://example.com/root' }
  await using app = await appWithDomains({ ...env, OPERATOR_NAME: 'Acme' })
  await patch(app, M, { aliases: ['menu', 'sale/2026'] })
  const pages = [
    ['GET', '/'],
    ['GET', '/app'],
    ['GET', '/app/sign-in'],
    ['POST', '/app/sign-in'],
    ['GET', '/app/assets/x.css'],
    ['GET', '/api/status'],
    ['POST', '/api/shorten'],
    ['OPTIONS', '/api/list'],
    ['GET', '/docs'],
    ['GET', '/docs/json'],
    ['GET', `/qr/${M}`],
    ['GET', `/cdn/qr/${M}.png`],
    ['GET', '/-/metrics'],
    ['GET', '/-/domains/ask?domain=go.example'],
    ['GET', '/robots.txt'],
    ['GET', '/.well-known/x'],
    ['PUT', `/${M}`],
    ['POST', `/${M}`],
  ] as const
  for (const host of ['evil.example', 'EVIL.example.:443', 'app.localhost', 'x.hop.test', 'a..b']) {
    for (const [method, path] of pages) {
      const { status, headers, text } = await app.call(method, path, {
        key: 'enterprise',
        headers: { host },
      })
      expect([host, method, path, status]).toEqual([host, method, path, 421])
      expect([headers.get('set-cookie'), headers.get('location')]).toEqual([null, null])
      expect(headers.get('cache-control')).toBe('no-store')
      expect(text).not.toContain('hop.test')
    }
    for (const path of [`/${M}`, '/bbbbbb', '/menu', '/sale/2026', `/${M}?x=1`]) {
      expect([host, path, ...(await outcome(app, host, path))]).toEqual([host, path, 302, M_URL])
    }
    expect((await get(app, host, '/NOSUCH26')).body.error).toBe('Code not found: NOSUCH26')
    for (const path of ['/-/live', '/-/ready']) {
      expect([host, path, (await get(app, host, path)).status]).toEqual([host, path, 200])
    }
  }
  expect((await get(app, 'img.example', `/cdn/qr/${M}.png`)).status).toBe(200)
  expect((await get(app, 'img.example', '/app/sign-in')).status).toBe(421)
  for (const host of [PRIMARY, 'HOP.test.:8080', '192.0.2.1', '127.1', '[::1]:8080', 'localhost']) {
    expect([host, (await get(app, host, '/app/sign-in')).status]).toEqual([host, 200])
  }
  for (const host of ['hopcode:3000', '', ':80']) {
    const head = ['GET /api/status HTTP/1.1', `Host: ${host}`, 'Connection: close', '', '']
    using client = await Conversation.open(app.url)
    client.send(head.join('\r\n'))
    expect([host, (await client.answers(1))[0]?.status]).toEqual([host, 200])
  }
})

test('the pages for visitors of such a name use no file, which it does not have', async () => {
  const logo = join(import.meta.dir, '../../docs/quick-start.png')
  await using app = await appWithDomains({ OPERATOR_NAME: 'Acme', OPERATOR_LOGO: logo })
  const { text } = await get(app, 'evil.example', '/NOSUCH26', { headers: NAVIGATION })
  expect([text.includes('Acme'), text.includes('src=')]).toEqual([true, false])
})

test('before the first domain, every host is answered with all of the service', async () => {
  await using app = await testApp()
  for (const host of ['evil.example', PRIMARY, 'a, b']) {
    expect([host, (await get(app, host, '/app/sign-in')).status]).toEqual([host, 200])
  }
  await add(app, { host: GO })
  expect((await get(app, 'evil.example', '/app/sign-in')).status).toBe(421)
})

test('short URLs of a domain have the port of BASE_URL', async () => {
  const env = { BASE_URL: 'http://hop.test:3000', IMPORT_ALIASES: 'all' }
  await using app = await testApp({ env })
  // Its own port is no part of a domain.
  const deps = { ...app.administration, baseUrl: env.BASE_URL }
  expect((await addDomain(deps, operatorOf(deps), { host: `${GO}:8443`, for: 'all' })).host).toBe(
    GO,
  )
  await app.claim(L, L_URL)
  const short = `http://${GO}:3000/${L}`
  const { body } = await patch(app, L, { domain: GO })
  expect(body).toMatchObject({ domain: GO, short_url: short, display_url: short })
  const { bytes } = await app.call('GET', `/cdn/qr/${L}.png`)
  expect((await decodeQr(bytes)).text).toBe(short)
  const aliased = await patch(app, L, { domain_aliases: { [GO]: ['menu'] } })
  expect(aliased.body.display_url).toBe(`http://${GO}:3000/menu`)
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  expect(text).toContain(`"domain":"${GO}"`)
  for (const host of [GO, `${GO}:3000`]) {
    expect(await outcome(app, host, `/${L}`)).toEqual([302, L_URL])
    const found = await app.call('GET', `/api/list?search=${host}/${L}/?x`, { key: 'free' })
    expect([host, found.body.total]).toEqual([host, 1])
  }
})
