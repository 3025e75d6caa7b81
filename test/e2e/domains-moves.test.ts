import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { resolveLink } from '../../src/addresses/resolve.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { testApp } from '../support/app.ts'
import { decodeQr } from '../support/decode-qr.ts'
import {
  add,
  appWithDomains,
  GO,
  get,
  L,
  L_URL,
  M,
  OLD,
  outcome,
  PRIMARY,
  patch,
} from '../support/domains.ts'

/** Links that move between services and between names of one service keep their domains. */

test('an export has the domains of links, and an import sets those that the account may use', async () => {
  await using app = await appWithDomains()
  await patch(app, L, {
    domain_aliases: { [GO]: ['menu', 'card'], [OLD]: ['menu'] },
    aliases: ['x'],
  })
  await patch(app, L, { display_alias: `//${GO}/card` })
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  await using other = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  await add(other, { host: GO, for: 'all' })
  const send = () =>
    other.call('POST', '/api/import', {
      key: 'free',
      raw: text,
      headers: { 'content-type': 'application/x-ndjson' },
    })
  const first = await send()
  expect(first.text).toContain(`${OLD} is not a domain of this service: `)
  expect((await get(other, PRIMARY, `/${M}`)).status).toBe(302)
  expect((await get(other, PRIMARY, `/${L}`)).status).toBe(404)
  await add(other, { host: OLD, for: 'all', codes: 'all' })
  expect((await send()).status).toBe(200)
  for (const path of ['/menu', '/card', `/${L}`]) {
    expect(await outcome(other, GO, path)).toEqual([302, L_URL])
  }
  const viewOf = async (one: typeof app) =>
    (await one.call('GET', `/api/links/${L}`, { key: 'free' })).body
  const { domain, aliases, domain_aliases, display_url } = await viewOf(app)
  expect(await viewOf(other)).toMatchObject({ domain, aliases, domain_aliases, display_url })
})

test('a short URL of any domain names its link', async () => {
  await using app = await appWithDomains()
  await patch(app, L, { domain_aliases: { [GO]: ['menu'] } })
  await patch(app, M, { aliases: ['menu'] })
  const find = (text: string): string | undefined => resolveLink(app.administration, text)?.code
  expect(find(`https://${GO}/menu`)).toBe(L)
  expect(find('GO.example/menu?ref=x')).toBe(L)
  expect(find(`${PRIMARY}/menu`)).toBe(M)
  expect(find(`${OLD}/menu`)).toBe(M)
  expect(find('menu')).toBe(M)
  expect(find('unknown.example/menu')).toBeUndefined()
})

test('after BASE_URL has moved, each printed address of the old one redirects', async () => {
  const env = { IMPORT_ALIASES: 'all' }
  const first = await testApp({ env })
  const urls = Array.from({ length: 1000 }, (_, n) => `https://example.com/${n}`)
  const made = await first.call('POST', '/api/bulk-shorten', { key: 'enterprise', json: { urls } })
  const codes = (made.body.results as { code: string }[]).map(({ code }) => code)
  expect(codes).toHaveLength(1000)
  for (let n = 0; n < 20; n++) {
    await patch(first, codes[n] ?? '', { aliases: [`alias-${n}`] }, 'enterprise')
  }
  const imageOf = async (app: typeof first, code: string) =>
    (await decodeQr((await app.call('GET', `/cdn/qr/${code}.png`)).bytes)).text
  expect(await imageOf(first, codes[0] ?? '')).toBe(`http://${PRIMARY}/${codes[0]}`)
  await first.stop()
  await using app = await testApp({
    env: { ...env, BASE_URL: 'http://new.test', ANONYMOUS_REDIRECTS_PER_MINUTE: '0' },
    dataDir: first.dataDir,
  })
  const deps = { ...app.administration, baseUrl: 'http://new.test' }
  await addDomain(deps, operatorOf(deps), { host: PRIMARY, for: 'all', codes: 'all' })
  for (const [n, code] of codes.entries()) {
    const { status, headers } = await get(app, PRIMARY, `/${code}`, {
      from: `198.51.100.${n % 250}`,
    })
    expect([status, headers.get('location')]).toEqual([302, urls[n] ?? null])
  }
  for (let n = 0; n < 20; n++) {
    for (const host of [PRIMARY, 'new.test']) {
      expect(await outcome(app, host, `/alias-${n}`)).toEqual([302, urls[n]])
    }
  }
  for (const code of codes.slice(0, 5))
    expect(await imageOf(app, code)).toBe(`http://new.test/${code}`)
  expect((await get(app, PRIMARY, '/app')).status).toBe(404)
  await first[Symbol.asyncDispose]()
})
