import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'

/** How the owner of the service finds links of other accounts. */

const LINKS = '/app/service/links'
const ACCOUNTS = '/app/service/accounts'
const ENV = { IMPORT_ALIASES: 'all', ENTERPRISE_WRITES_PER_MINUTE: '0' }

async function create(app: TestApp, key: string, json: object): Promise<string> {
  const { status, body } = await app.call('POST', '/api/shorten', { key, json })
  expect(status).toBe(201)
  return body.code as string
}

const find = (owner: Visitor, text: string) =>
  owner.get(`${LINKS}?code=${encodeURIComponent(text)}`)

test('the owner finds links of any account by host, a part of the URL, alias and title', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const url = 'https://login.phish.example/bank?x=1'
  const theirs = await create(app, 'free', { url, title: 'Sommer São Paulo' })
  const own = await create(app, key, { url: 'https://www.phish.example/' })
  const other = await create(app, 'free', { url: 'https://good.example/' })
  await app.call('POST', `/api/links/${theirs}/aliases`, {
    key: 'free',
    json: { alias: 'Promo-26/now' },
  })
  const expected: [string, string[]][] = [
    ['phish.example', [theirs, own]],
    ['login.phish', [theirs]],
    ['PHISH.example/BANK', [theirs]],
    ['sao paulo', [theirs]],
    ['good', [other]],
  ]
  for (const [text, codes] of expected) {
    const { status, text: shown } = await find(owner, text)
    const found = [theirs, own, other].filter((code) => shown.includes(`href="${LINKS}/${code}"`))
    expect([text, status, found]).toEqual([text, 200, codes])
  }
  const { text } = await find(owner, 'login.phish')
  expect(text).toContain('free@example.com')
})

test('a search of all accounts shows the 200 newest matches, and says that there are more', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const urls = Array.from({ length: 205 }, (_, n) => `https://many.example/${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
  const codes = (body.results as { code: string }[]).map(({ code }) => code)
  const { text } = await find(owner, 'many.example')
  const shown = codes.filter((code) => text.includes(`href="${LINKS}/${code}"`))
  expect(shown).toEqual(codes.slice(5))
  expect(text).toContain('The first 200 links')
})

test('the number of links of an account leads to its links, which are searched and paged', async () => {
  await using app = await testApp({ env: ENV })
  const { owner } = await setUpOwner(app)
  app.key('free')
  const id = app.administer(({ accounts }) => accounts.findByEmail('free@example.com')?.id)
  const path = `${ACCOUNTS}/${id}`
  expect((await owner.get(path)).text).toContain(`<a href="${path}/links">0 of 100,000</a>`)
  expect((await owner.get(`${path}/links`)).text).toContain('No links.')
  const codes: string[] = []
  for (let n = 0; n < 51; n++) {
    codes.push(await create(app, 'free', { url: `https://x.example/${n}` }))
  }
  const second = await owner.get(`${path}/links?page=2`)
  expect(second.text).toContain(`href="${LINKS}/${codes[0]}"`)
  const found = await owner.get(`${path}/links?search=x.example%2F50`)
  expect(codes.filter((code) => found.text.includes(`href="${LINKS}/${code}"`))).toEqual([
    codes[50] ?? '',
  ])
  expect(found.text).toContain('1 link')
})
