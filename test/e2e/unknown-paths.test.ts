import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { OWNER, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { add, GO, PRIMARY } from '../support/domains.ts'

/** Service → Unknown paths. */

const PATH = '/app/service/unknown-paths'
const A = '192.0.2.1'
const B = '198.51.100.1'

/** Paths on the page, each with its requests. */
async function listed(owner: Visitor, host = ''): Promise<string[]> {
  const { status, text } = await owner.get(`${PATH}?domain=${host}`)
  expect(status).toBe(200)
  const rows = text.split('<tr>').slice(2)
  return rows.map((row) =>
    [...row.matchAll(/<td[^>]*>\s*<div>(?:<span[^>]*>)?([^<]*)/g)]
      .slice(0, 2)
      .map(([, cell]) => cell)
      .join(' '),
  )
}

/** Asks for a path once from each address. */
async function ask(app: TestApp, path: string, from: readonly string[], host = PRIMARY) {
  for (const one of from) {
    expect((await app.call('GET', path, { from: one, headers: { host } })).status).toBe(404)
  }
}

/** Resolves when a path that was asked for last is listed: all of before are written by then. */
async function untilListed(app: TestApp, owner: Visitor, host?: string): Promise<void> {
  await ask(app, '/last', [A, B, A], host)
  const isLast = (row: string) => row.startsWith('last ')
  await eventually('the last path is listed', async () => {
    return (await listed(owner, host === PRIMARY ? '' : host)).some(isLast)
  })
}

test('a mistyped path is listed after three requests from two networks, with a way to its alias', async () => {
  await using app = await testApp({ visitFlushMs: 20 })
  const { owner } = await setUpOwner(app)
  await ask(app, '/menue', [A, B, A])
  await ask(app, '/Menue/', [B])
  await ask(app, '/a/%C3%BCber-uns', [A, B, B])
  await ask(app, '/one-network', [A, '192.0.2.2', A, A])
  await ask(app, '/wp-login.php', [A, B, A])
  await ask(app, '/me%40example.com', [A, B, A])
  await ask(app, '/call-0151234567', [A, B, A])
  for (const from of [A, B, A]) {
    expect((await app.call('HEAD', '/by-head', { from })).status).toBe(404)
  }
  await untilListed(app, owner)
  expect(await listed(owner)).toEqual(['menue 4', 'a/über-uns 3', 'last 3'])

  const { text } = await owner.get(PATH)
  const [, href = ''] = /href="([^"]*code=menue[^"]*)"/.exec(text) ?? []
  const form = await owner.get(href.replaceAll('&amp;', '&'))
  expect(form.text).toMatch(/name="code"[^>]* value="menue"/)
  await owner.post('/app/links', { url: 'https://example.com/menu', code: 'menue' })
  expect((await app.call('GET', '/menue')).status).toBe(302)
  expect(await listed(owner)).toEqual(['a/über-uns 3', 'last 3'])
  app.advance(30 * 24 * 3600 * 1000)
  await owner.signIn(OWNER)
  expect(await listed(owner)).toEqual([])
  await eventually('old days are removed', () =>
    app.administer(({ db }) => db.query('SELECT 1 FROM unknown_paths').get() === null),
  )
})

test('each domain has its own unknown paths', async () => {
  await using app = await testApp({ visitFlushMs: 20 })
  const { owner } = await setUpOwner(app)
  await add(app, { host: GO, for: 'all' })
  await ask(app, '/menue', [A, B, A], GO)
  await ask(app, '/api/status', [A, B, A], GO)
  await untilListed(app, owner, GO)
  await untilListed(app, owner, PRIMARY)
  expect(await listed(owner, GO)).toEqual(['last 3', 'menue 3'])
  expect(await listed(owner)).toEqual(['last 3'])
  const { text } = await owner.get(`${PATH}?domain=${GO}`)
  const [, href = ''] = /href="([^"]*code=menue[^"]*)"/.exec(text) ?? []
  const form = await owner.get(href.replaceAll('&amp;', '&'))
  expect(form.text).toMatch(new RegExp(`<option value="${GO}" selected`))
  expect((await owner.get(`${PATH}?domain=no.example`)).status).toBe(404)
})

test('a browser that is redirected from an unknown path is counted too', async () => {
  await using app = await testApp({
    visitFlushMs: 20,
    env: { NOT_FOUND_URL: 'https://example.com/sorry' },
  })
  const { owner } = await setUpOwner(app)
  const headers = { 'sec-fetch-dest': 'document' }
  for (const from of [A, B, A]) {
    expect((await app.call('GET', '/menue', { from, headers })).status).toBe(302)
  }
  await untilListed(app, owner)
  expect(await listed(owner)).toEqual(['last 3', 'menue 3'])
})

test('with VISIT_DETAILS=off nothing is counted', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: { VISIT_DETAILS: 'off' } })
  const { owner } = await setUpOwner(app)
  await ask(app, '/menue', [A, B, A, B])
  expect((await owner.get(PATH)).text).toContain('VISIT_DETAILS=off')
  await app.stop()
  const rows = app.administer(({ db }) => db.query('SELECT * FROM unknown_paths').all())
  expect(rows).toEqual([])
})
