import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { makeMember } from '../support/members.ts'

/** Aliases on the page of a link. */

const PATH = '/app/links/SPRING26'
const SETTINGS = `${PATH}/settings`

test('an account that may have aliases adds and removes them on the page of a link', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const change = (fields: Record<string, string>) => free.post(SETTINGS, fields)
  const aliases = async () =>
    (await app.call('GET', '/api/links/SPRING26', { key: 'free' })).body.aliases
  for (const add of ['/spring-sale', 'http://hop.test/gr%C3%BC%C3%9Fe', '<i>&"']) {
    expect((await change({ add })).status).toBe(303)
  }
  expect(await aliases()).toEqual(['<i>&"', 'grüße', 'spring-sale'])
  const { text } = await free.get(SETTINGS)
  expect(text).toContain('hop.test/&lt;i&gt;&amp;')
  expect(text).not.toContain('<i>')
  const refused = await change({ add: 'app/links' })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('Path already in use: app/links')
  expect((await change({ remove: '<i>&"' })).status).toBe(303)
  expect(await aliases()).toEqual(['grüße', 'spring-sale'])
})

test('changes in several tabs at once are all kept, up to the maximum', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const change = (fields: Record<string, string>) => free.post(SETTINGS, fields)
  const aliases = async () =>
    (await app.call('GET', '/api/links/SPRING26', { key: 'free' })).body.aliases as string[]
  const paths = Array.from({ length: 12 }, (_, n) => `path-${n}`)
  await change({ add: 'old-path' })
  await Promise.all([...paths.map((add) => change({ add })), change({ remove: 'old-path' })])
  expect((await aliases()).toSorted()).toEqual(paths.toSorted())
  const more = Array.from({ length: 9 }, (_, n) => `more-${n}`)
  const answers = await Promise.all(more.map((add) => change({ add })))
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(8)
  expect(await aliases()).toHaveLength(20)
})

test('the list shows the alias of a link, and its search finds links by a part of it', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26', 'https://example.com/1')
  await app.claim('SUMMER26', 'https://example.com/2')
  const set = (code: string, aliases: string[]) =>
    app.call('PATCH', `/api/links/${code}`, { key: 'free', json: { aliases } })
  await set('SPRING26', ['Printed-Path', '<i>/\u202etext'])
  const found = async (q: string) => {
    const { text } = await free.get(`/app/links?${new URLSearchParams({ q })}`)
    return ['SPRING26', 'SUMMER26'].filter((code) => text.includes(`name="code" value="${code}"`))
  }
  const { text } = await free.get('/app/links')
  expect(text).toContain('/&lt;i&gt;/%E2%80%AEtext')
  for (const q of ['printed-path', 'INTED-p', '/printed', '<i>/']) {
    expect([q, await found(q)]).toEqual([q, ['SPRING26']])
  }
  expect((await free.get('/app/links?q=printed')).text).toContain('/<mark>Printed</mark>-Path')
  // The contract of the API has no aliases.
  const list = await app.call('GET', '/api/list?search=printed', { key: 'free' })
  expect(list.body).toMatchObject({ total: 0 })
  await set('SPRING26', [])
  await set('SUMMER26', ['printed-path'])
  expect(await found('printed-path')).toEqual(['SUMMER26'])
  const raw = JSON.stringify({ url: 'https://example.com/3', code: 'AUTUMN26', aliases: ['fall'] })
  const headers = { 'content-type': 'application/x-ndjson' }
  await app.call('POST', '/api/import', { key: 'free', headers, raw })
  expect((await free.get('/app/links?q=fall')).text).toContain('AUTUMN26')
})

test('a QR code of an alias contains its address', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  expect((await free.get(`${PATH}/qr`)).text).not.toContain('Address in the code')
  await app.call('PATCH', '/api/links/SPRING26', {
    key: 'free',
    json: { aliases: ['Printed-Path', '2026/gr\u00fc\u00dfe & 100%'] },
  })
  const cookie = [...free.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const scanned = async (format: string, alias: string) => {
    const query = new URLSearchParams({ alias, size: '300', ref: '' })
    const image = await fetch(`${app.url}${PATH}/qr.${format}?${query}`, { headers: { cookie } })
    return (await decodeQr(await image.bytes())).text
  }
  for (const format of ['png', 'svg']) {
    expect(await scanned(format, 'Printed-Path')).toBe('http://hop.test/Printed-Path')
    expect(await scanned(format, '')).toBe('http://hop.test/SPRING26')
  }
  const address = await scanned('png', '2026/gr\u00fc\u00dfe & 100%')
  expect(address).toBe('http://hop.test/2026/gr%C3%BC%C3%9Fe%20%26%20100%25')
  expect((await app.call('GET', new URL(address).pathname)).status).toBe(302)
  const { text } = await free.get(`${PATH}/qr?alias=Printed-Path`)
  expect(text).toContain('Address in the code')
  expect(text).toMatch(/qr\.svg\?[^"]*alias=Printed-Path/)
  const image = await app.call('GET', '/api/qr/SPRING26')
  expect((await decodeQr(image.bytes)).text).toBe('http://hop.test/SPRING26')
  expect((await free.get(`${PATH}/qr.png?alias=other`)).status).toBe(404)
})

test('the page of a member who may not have aliases does not offer them', async () => {
  await using app = await testApp({ env: { ALIASES: 'owners' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const { text } = await free.get(SETTINGS)
  expect(text).not.toContain('New address')
  expect(text).toContain('ask an owner of this service')
  const refused = await free.post(SETTINGS, { add: 'a-b' })
  expect(refused.status).toBe(403)
})

test('the newest address is shown until another is chosen, on the page and in what is copied', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const change = (fields: Record<string, string>) => free.post(SETTINGS, fields)
  const shown = async () =>
    /id="short-url"\s+class="code" value="([^"]*)"/.exec((await free.get(PATH)).text)?.[1]
  expect(await shown()).toBe('http://hop.test/SPRING26')
  await change({ add: 'spring-sale' })
  await change({ add: 'menü' })
  expect(await shown()).toBe('http://hop.test/men%C3%BC')
  expect((await change({ display: 'spring-sale' })).status).toBe(303)
  expect(await shown()).toBe('http://hop.test/spring-sale')
  expect((await change({ display: 'unknown' })).status).toBe(422)
  await change({ remove: 'spring-sale' })
  expect(await shown()).toBe('http://hop.test/men%C3%BC')
})
