import { describe, expect, test } from 'bun:test'
import { removeDomain, setDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
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
import { cookieOf, send, WORD } from '../support/link-passwords.ts'
import { operator } from '../support/members.ts'
import { invalid } from '../support/refusals.ts'

/** Several domains: which links each answers. */

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
const notFound = (code: string) => [404, `Code not found: ${code}`]

describe.each(['1', '2'])('with REDIRECT_THREADS=%s', (threads) => {
  const env = { REDIRECT_THREADS: threads }

  test('a link answers on its domain, on the primary one, and where all codes answer', async () => {
    await using app = await appWithDomains(env)
    for (const host of [GO, PRIMARY, OLD, '203.0.113.9', 'other.example']) {
      for (let time = 0; time < 3; time++) {
        const { status, headers } = await get(app, host, `/${L}`)
        expect([host, status, headers.get('location')]).toEqual([host, 302, L_URL])
        expect(headers.get('x-service-code')).toBe(L)
      }
    }
    expect(await outcome(app, GO, '/aaaaaa')).toEqual([302, L_URL])
    expect(problemsOf(app)).toEqual([])
  })

  test('a link of another domain is unknown, in every spelling of the host', async () => {
    await using app = await appWithDomains(env)
    for (const host of [GO, 'GO.example:8443', 'go.example.', 'gO.eXample.:80', 'go.example:']) {
      for (let time = 0; time < 3; time++) {
        expect([host, await outcome(app, host, `/${M}`)]).toEqual([host, notFound(M)])
        expect([host, await outcome(app, host, `/${L}`)]).toEqual([host, [302, L_URL]])
      }
    }
    expect(await outcome(app, OLD, `/${M}`)).toEqual([302, M_URL])
    expect(await outcome(app, PRIMARY, `/${M}`)).toEqual([302, M_URL])
    const first = await get(app, GO, `/${M}`, { from: '192.0.2.77' })
    const read = await app.call('GET', '/api/lookup/BBBBBB', { from: '192.0.2.77' })
    const left = ({ headers }: typeof first) => Number(headers.get('x-ratelimit-remaining'))
    expect(left(read)).toBe(left(first) - 1)
  })

  test('the same path is an alias on each domain', async () => {
    await using app = await appWithDomains(env)
    await app.claim('CCCCCC', 'https://example.com/c')
    expect(await patch(app, L, { domain_aliases: { [GO]: ['menu'] } })).toMatchObject({
      status: 200,
      body: { aliases: [], domain_aliases: { [GO]: ['menu'] } },
    })
    expect((await patch(app, M, { aliases: ['menu'] })).status).toBe(200)
    for (let time = 0; time < 3; time++) {
      expect(await outcome(app, GO, '/menu')).toEqual([302, L_URL])
      expect(await outcome(app, PRIMARY, '/menu')).toEqual([302, M_URL])
      expect(await outcome(app, OLD, '/menu')).toEqual([302, M_URL])
    }
    expect(await patch(app, 'CCCCCC', { domain_aliases: { [GO]: ['menu'] } })).toMatchObject({
      status: 409,
      body: { error: 'Path already in use: menu' },
    })
    // An own alias goes before that of the primary domain.
    await patch(app, 'CCCCCC', { domain_aliases: { [OLD]: ['menu'] } })
    expect(await outcome(app, OLD, '/menu')).toEqual([302, 'https://example.com/c'])
    await patch(app, 'CCCCCC', { domain_aliases: null })
    expect(await outcome(app, OLD, '/menu')).toEqual([302, M_URL])
    await patch(app, L, { domain_aliases: {} })
    expect(await outcome(app, GO, '/menu')).toEqual(notFound('MENU'))
  })

  test('one slash at the end of a path counts for nothing, and two are another path', async () => {
    await using app = await appWithDomains(env)
    await patch(app, L, {
      aliases: ['sale/2026', 'a/b/c'],
      domain_aliases: { [GO]: ['menu', 'grüße/karte'], [OLD]: ['old/menu'] },
    })
    const paths: [host: string, paths: string[]][] = [
      [PRIMARY, [`/${L}`, '/aaaaaa', '/sale/2026', '/sale%2F2026', '/a/b/c', `/${L}.`]],
      [GO, [`/${L}`, '/aaaaaa', '/menu', '/gr%C3%BC%C3%9Fe/karte', '/menu).', '/%6denu']],
      [OLD, [`/${L}`, '/old/menu', '/sale/2026', '/a/b/c']],
      ['other.example', [`/${L}`, '/sale/2026']],
    ]
    for (const [host, known] of paths) {
      for (const path of known) {
        for (const end of ['', '/', '/?x=1', '/?', '%2F', '/).']) {
          if (end === '/).' && path.endsWith('.')) continue
          const found = await outcome(app, host, path + end)
          expect([host, path + end, ...found]).toEqual([host, path + end, 302, L_URL])
        }
        for (const end of ['//', '//?x=1', '/%2F', '/x']) {
          expect([host, path + end, (await outcome(app, host, path + end))[0]]).toEqual([
            host,
            path + end,
            404,
          ])
        }
      }
    }
    expect(await outcome(app, GO, `/${M}/`)).toEqual(notFound(M))
    expect(await outcome(app, GO, '/sale/2026/')).toEqual(notFound('SALE/2026'))
    const unknown = await get(app, GO, '/unknown1/', { from: '192.0.2.78' })
    expect(unknown.headers.get('x-ratelimit-remaining')).toBe('299')
    expect((await app.call('HEAD', '/menu/', { headers: { host: GO } })).status).toBe(302)
  })

  test('a form is sent to the path with a slash on each domain, and its cookie unlocks all', async () => {
    await using app = await appWithDomains({ ...env, ANONYMOUS_READS_PER_MINUTE: '0' })
    await patch(app, L, {
      password: WORD,
      aliases: ['sale/2026'],
      domain_aliases: { [GO]: ['menu', 'summer/menu'] },
    })
    const places: [host: string, path: string][] = [
      [PRIMARY, `/${L}/`],
      [PRIMARY, '/aaaaaa/'],
      [PRIMARY, '/sale/2026/'],
      [GO, `/${L}/`],
      [GO, '/menu/'],
      [GO, '/summer/menu/'],
      [OLD, '/sale/2026/'],
      ['other.example', `/${L}/`],
    ]
    for (const [host, path] of places) {
      const asked = await get(app, host, path, { headers: NAVIGATION })
      expect([host, path, asked.status]).toEqual([host, path, 200])
      const sent = await send(app, WORD, path, { headers: { host } })
      expect([host, path, sent.status, sent.headers.get('location')]).toEqual([
        host,
        path,
        303,
        L_URL,
      ])
      const again = await get(app, host, path, { headers: cookieOf(sent) })
      expect([host, path, again.status]).toEqual([host, path, 302])
    }
  })

  test('an alias on a domain closes the code of its form everywhere', async () => {
    await using app = await appWithDomains(env)
    await patch(app, L, { domain_aliases: { [GO]: ['menu01'] } })
    const json = { code: 'MENU01' }
    expect(await app.call('POST', '/api/reserve', { key: 'free', json })).toMatchObject({
      status: 409,
      body: { error: 'Code already in use: MENU01' },
    })
    expect((await patch(app, M, { domain_aliases: { [GO]: ['aaaaaa'] } })).status).toBe(409)
    expect(await outcome(app, GO, '/menu01')).toEqual([302, L_URL])
    expect(await outcome(app, PRIMARY, '/menu01')).toEqual(notFound('MENU01'))
  })

  test('a change of the domain is effective with its response, also in the stored image', async () => {
    await using app = await appWithDomains(env)
    const imageText = async (path: string) =>
      (await decodeQr((await get(app, PRIMARY, path)).bytes)).text
    expect(await outcome(app, GO, `/${L}`)).toEqual([302, L_URL])
    expect(await imageText(`/api/qr/${L}`)).toBe(`http://${GO}/${L}`)
    expect(await imageText(`/cdn/qr/${L}.png`)).toBe(`http://${GO}/${L}`)
    expect(await patch(app, L, { domain: null })).toMatchObject({
      status: 200,
      body: { domain: null, short_url: `http://${PRIMARY}/${L}` },
    })
    expect(await outcome(app, GO, `/${L}`)).toEqual(notFound(L))
    expect(await outcome(app, PRIMARY, `/${L}`)).toEqual([302, L_URL])
    expect(await imageText(`/cdn/qr/${L}.png`)).toBe(`http://${PRIMARY}/${L}`)
    // The primary domain can be named too.
    await patch(app, L, { domain: GO })
    expect(await outcome(app, GO, `/${L}`)).toEqual([302, L_URL])
    expect((await patch(app, L, { domain: 'HOP.test' })).body).toMatchObject({ domain: null })
    expect(await outcome(app, GO, `/${L}`)).toEqual(notFound(L))
  })

  test('a domain that is removed answers the short links of the primary one, and nothing else', async () => {
    await using app = await appWithDomains(env)
    await patch(app, L, { domain_aliases: { [GO]: ['menu', 'card'] } })
    await app.claim('CCCCCC', 'https://example.com/c')
    await patch(app, 'CCCCCC', { domain: GO })
    const remove = (movesLinks: boolean) =>
      removeDomain(app.administration, operatorOf(app.administration), { host: GO, movesLinks })
    const uses = `2 links and 2 aliases use ${GO}: --move-links gives them the primary domain`
    expect(await refusalOf(remove(false))).toContain(uses)
    await patch(app, M, { aliases: ['menu'] })
    expect(await refusalOf(remove(true))).toContain(`${PRIMARY} has aliases of ${GO} already: menu`)
    expect(await outcome(app, GO, '/card')).toEqual([302, L_URL])
    await patch(app, M, { aliases: [] })
    await remove(true)
    for (const host of [GO, PRIMARY]) {
      expect(await outcome(app, host, '/menu')).toEqual([302, L_URL])
      expect(await outcome(app, host, `/${M}`)).toEqual([302, M_URL])
    }
    const { body } = await app.call('GET', `/api/links/${L}`, { key: 'free' })
    expect(body).toMatchObject({ domain: null, domain_aliases: {}, aliases: ['card', 'menu'] })
    const { bytes } = await app.call('GET', `/cdn/qr/${L}.png`)
    expect((await decodeQr(bytes)).text).toBe(`http://${PRIMARY}/${L}`)
    await removeDomain(app.administration, operatorOf(app.administration), {
      host: OLD,
      movesLinks: false,
    })
    for (const path of ['/app/sign-in', '/api/status', '/docs', '/']) {
      const { status, headers } = await get(app, GO, path)
      expect([path, status, headers.get('set-cookie')]).toEqual([path, 421, null])
    }
    expect(await outcome(app, GO, '/menu/')).toEqual([302, L_URL])
    expect((await get(app, PRIMARY, '/app/sign-in')).status).toBe(200)
  })

  test('a domain begins to answer all codes, and stops', async () => {
    await using app = await appWithDomains(env)
    expect(await outcome(app, GO, `/${M}`)).toEqual(notFound(M))
    await setDomain(app.administration, operatorOf(app.administration), { host: GO, codes: 'all' })
    expect(await outcome(app, GO, `/${M}`)).toEqual([302, M_URL])
    await setDomain(app.administration, operatorOf(app.administration), { host: GO, codes: 'own' })
    expect(await outcome(app, GO, `/${M}`)).toEqual(notFound(M))
  })
})

test('another domain has short links and nothing else', async () => {
  await using app = await appWithDomains()
  const paths = [
    '/app',
    '/app/sign-in',
    '/api/status',
    '/docs',
    '/docs/json',
    '/-/ready',
    '/qr/AAAAAA',
  ]
  for (const path of [
    ...paths,
    '/cdn/qr/AAAAAA.png',
    '/-/metrics',
    '/app/assets/x.css',
    '/.well-known/x',
  ]) {
    const { status, headers } = await get(app, GO, path)
    expect([path, status, headers.get('set-cookie')]).toEqual([path, 404, null])
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    for (const path of ['/app/sign-in', '/api/shorten', `/${L}`, '/']) {
      const { status, headers } = await app.call(method, path, {
        key: 'free',
        headers: { host: GO },
      })
      expect([method, path, status]).toEqual([method, path, 404])
      expect(headers.get('set-cookie')).toBeNull()
    }
  }
  expect(await get(app, GO, '/robots.txt')).toMatchObject({ status: 200 })
  expect((await get(app, GO, '/favicon.ico')).status).toBe(204)
  expect((await get(app, PRIMARY, '/api/status')).status).toBe(200)
})

test('the root and unknown paths of a domain have destinations of its own', async () => {
  await using app = await appWithDomains({ NOT_FOUND_URL: 'https://example.com/service' })
  expect((await get(app, GO, '/')).status).toBe(404)
  expect((await get(app, GO, '/nothing', { headers: NAVIGATION })).headers.get('location')).toBe(
    'https://example.com/service',
  )
  await setDomain(app.administration, operatorOf(app.administration), {
    host: GO,
    rootUrl: 'https://brand.example/',
    notFoundUrl: 'https://brand.example/lost',
  })
  expect(await outcome(app, GO, '/')).toEqual([302, 'https://brand.example/'])
  for (const path of ['/nothing', '/NOTHING1', '/a/b.c', `/${M}`, '/app']) {
    const page = await get(app, GO, path, { headers: NAVIGATION })
    expect([path, page.status, page.headers.get('location')]).toEqual([
      path,
      302,
      'https://brand.example/lost',
    ])
    const json = await get(app, GO, path, { headers: { accept: 'application/json' } })
    expect([path, json.status]).toEqual([path, 404])
    expect(json.body.error).toStartWith('Code not found: ')
  }
  await patch(app, L, { paused: true })
  const paused = await get(app, GO, `/${L}`, { headers: NAVIGATION })
  expect([paused.status, paused.headers.get('location')]).toEqual([404, null])
  await setDomain(app.administration, operatorOf(app.administration), {
    host: GO,
    rootUrl: null,
    notFoundUrl: null,
  })
  expect((await get(app, GO, '/')).status).toBe(404)
})

test('new links of an account get its default domain', async () => {
  await using app = await appWithDomains()
  const { data } = app.administration
  const accountId = app.administration.data.accounts.findByEmail('free@example.com')?.id ?? 0
  const domainId = data.domains.findByHost(GO)?.id ?? 0
  expect(await data.domains.setDefault({ author: operator(app, accountId), domainId })).toBe(true)
  const url = 'https://example.com/new'
  const { status, body } = await app.call('POST', '/api/shorten', { key: 'free', json: { url } })
  expect([status, body.short_url]).toEqual([201, `http://${GO}/${body.code}`])
  expect(await outcome(app, PRIMARY, `/${body.code}`)).toEqual([302, url])
  expect(await outcome(app, GO, `/${body.code}`)).toEqual([302, url])
  const bulk = await app.call('POST', '/api/bulk-shorten', {
    key: 'free',
    json: { urls: ['https://example.com/bulk'] },
  })
  expect(bulk.body.results).toMatchObject([{ short_url: expect.stringContaining(`http://${GO}/`) }])
  const chosen = { url: 'https://example.com/p', domain: null, title: 'P' }
  const other = await app.call('POST', '/api/shorten', { key: 'free', json: chosen })
  expect(other.body.short_url).toStartWith(`http://${PRIMARY}/`)
  const reserved = await app.call('POST', '/api/reserve', {
    key: 'free',
    json: { code: 'DDDDDD', domain: OLD },
  })
  expect(reserved.body.short_url).toBe(`http://${OLD}/DDDDDD`)
  const { body: list } = await app.call('GET', '/api/domains', { key: 'free' })
  expect(list.items).toMatchObject([
    { domain: PRIMARY, codes: 'all', is_default: false },
    { domain: GO, codes: 'own', is_default: true, root_url: null, not_found_url: null },
    { domain: OLD, codes: 'all', is_default: false },
  ])
})

test('without further domains, the host of BASE_URL is listed as the default', async () => {
  await using app = await testApp()
  const { body } = await app.call('GET', '/api/domains', { key: 'free' })
  const about = { root_url: null, not_found_url: null, codes: 'all', is_default: true }
  expect(body).toEqual({ items: [{ domain: PRIMARY, ...about }] })
})

test('an account uses the domains that are for it', async () => {
  await using app = await appWithDomains()
  await add(app, { host: 'owners.example' })
  const accountId = app.administration.data.accounts.findByEmail('free@example.com')?.id ?? 0
  await add(app, { host: 'mine.example', for: accountId })
  app.key('free-other')
  const error = invalid('domain')
  for (const domain of ['owners.example', 'unknown.example', 'go.example/x', '', '192.0.2.1']) {
    expect(await patch(app, M, { domain })).toMatchObject({ status: 400, body: { error } })
    const json = { url: 'https://example.com/x', domain }
    const created = await app.call('POST', '/api/shorten', { key: 'free', json })
    expect(created).toMatchObject({ status: 400, body: { error } })
    const aliases = { domain_aliases: { [domain]: ['menu'] } }
    expect(await patch(app, M, aliases)).toMatchObject({ status: 400, body: { error } })
  }
  expect((await patch(app, M, { domain: 'MINE.example.' })).body.domain).toBe('mine.example')
  const json = { url: 'https://example.com/x', domain: 'mine.example' }
  const other = await app.call('POST', '/api/shorten', { key: 'free-other', json })
  expect(other).toMatchObject({ status: 400, body: { error } })
  const { body } = await app.call('GET', '/api/domains', { key: 'free-other' })
  expect((body.items as { domain: string }[]).map(({ domain }) => domain)).toEqual([
    PRIMARY,
    GO,
    OLD,
  ])
})

test('only this machine may ask for which domains certificates are needed', async () => {
  await using app = await appWithDomains()
  const ask = (domain: string, headers: Record<string, string> = {}) =>
    fetch(`${app.url}/-/domains/ask?domain=${domain}`, { headers }).then(({ status }) => status)
  expect(await ask(GO)).toBe(200)
  expect(await ask('GO.example')).toBe(200)
  expect(await ask(PRIMARY)).toBe(200)
  expect(await ask('evil.example')).toBe(404)
  expect(await ask('')).toBe(404)
  expect(await ask(GO, { 'x-forwarded-for': '192.0.2.9' })).toBe(404)
})
