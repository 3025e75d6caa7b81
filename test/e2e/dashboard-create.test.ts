import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { makeMember } from '../support/members.ts'

/** The form that creates a link: its URL, a path of any form, and its first properties. */

const LINKS = '/app/links'
const URL = 'https://example.com/spring'
const ALL = { env: { IMPORT_ALIASES: 'all' } }

const linkAt = async (app: TestApp, code: string) =>
  (await app.call('GET', `/api/links/${code}`, { key: 'free' })).body
const newestCode = async (app: TestApp) => {
  const { body } = await app.call('GET', '/api/list?limit=1', { key: 'free' })
  return (body.items as { code: string }[])[0]?.code ?? ''
}
const total = async (app: TestApp) =>
  (await app.call('GET', '/api/list', { key: 'free' })).body.total

test('a path that is no code becomes the displayed address, with properties, in one request', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const sent = {
    url: 'example.com/spring',
    code: '/Frühling/sale',
    title: 'Spring sale',
    tags: 'Print, spring',
    starts_at: '2026-01-01T10:00',
    expires_at: '2040-01-01T10:00',
    max_hits: '500',
    zone: 'UTC',
  }
  const { status, text } = await free.post(LINKS, sent)
  expect(status).toBe(200)
  expect(text).toContain('value="http://hop.test/Fr%C3%BChling/sale">hop.test/Frühling/sale</data>')
  const code = await newestCode(app)
  expect(text).toContain(`/app/links/${code}/qr.png`)
  expect(await linkAt(app, code)).toMatchObject({
    url: 'https://example.com/spring',
    display_url: 'http://hop.test/Fr%C3%BChling/sale',
    title: 'Spring sale',
    tags: ['print', 'spring'],
    starts_at: '2026-01-01T10:00:00.000Z',
    expires_at: '2040-01-01T10:00:00.000Z',
    max_hits: 500,
  })
  expect((await app.call('GET', '/Fr%C3%BChling/sale')).status).toBe(302)
  expect(problemsOf(app)).toEqual([])
})

test('a path is reserved without a URL, as a code or as an alias', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  for (const path of ['spring26', 'menu']) {
    const { text } = await free.post(LINKS, { url: '', code: path })
    expect(text).toContain('The path is yours')
    expect(text).toContain(`hop.test/${path}</data>`)
  }
  expect(await linkAt(app, await newestCode(app))).toMatchObject({ url: null, aliases: ['menu'] })
})

test('a URL that the account has gets a further link for a path, and stays as it is without one', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const { code } = await app.shorten(URL)
  const again = await free.post(LINKS, { url: URL, title: 'Another title' })
  expect(again.text).toContain('You already have a short link')
  expect(await linkAt(app, code)).toMatchObject({ title: null })
  const poster = await free.post(LINKS, { url: URL, code: 'the-poster', title: 'Poster' })
  expect(poster.text).toContain('hop.test/the-poster</data>')
  expect(await linkAt(app, await newestCode(app))).toMatchObject({ url: URL, title: 'Poster' })
  expect((await app.call('GET', '/the-poster')).headers.get('location')).toBe(URL)
  expect(await total(app)).toBe(2)
})

test('a further link is created at once with its URL: a refusal leaves nothing, not even for a moment', async () => {
  // Room for two of the URLs.
  const env = { ...ALL.env, FREE_URL_BYTES_MAX: String(URL.length * 2 + 30) }
  await using app = await testApp({ env })
  const free = await makeMember(app, 'free@example.com')
  await app.shorten(URL)
  const created = () =>
    app.administer(
      ({ db }) =>
        db.query<{ seq: number }, []>("SELECT seq FROM sqlite_sequence WHERE name = 'links'").get()
          ?.seq,
    )
  const sent = { url: URL, code: 'the-poster' }
  const both = await Promise.all([free.post(LINKS, sent), free.post(LINKS, sent)])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 422])
  expect(both.find(({ status }) => status === 422)?.invalid).toEqual(['code'])
  expect(await linkAt(app, await newestCode(app))).toMatchObject({
    url: URL,
    aliases: ['the-poster'],
  })
  expect([await total(app), created()]).toEqual([2, 2])
  const refused = await free.post(LINKS, { url: URL, code: 'a-flyer' })
  expect([refused.status, refused.invalid]).toEqual([422, ['url']])
  expect([await total(app), created()]).toEqual([2, 2])
  expect((await app.call('GET', '/a-flyer')).status).toBe(404)
  expect(problemsOf(app)).toEqual([])
})

test('a code is shown, copied and printed in the letters that were typed, and answers in any case', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const { text } = await free.post(LINKS, { url: URL, code: 'Summer26' })
  expect(text).toContain('value="http://hop.test/Summer26"')
  for (const page of [LINKS, `${LINKS}?q=summer`, `${LINKS}/SUMMER26/settings`]) {
    const shown = (await free.get(page)).text
    expect([page, shown.includes('hop.test/Summer26')]).toEqual([page, true])
    expect([page, shown.includes('hop.test/SUMMER26')]).toEqual([page, false])
  }
  const cookie = [...free.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const image = await fetch(`${app.url}${LINKS}/SUMMER26/qr.png`, { headers: { cookie } })
  expect((await decodeQr(await image.bytes())).text).toBe('http://hop.test/Summer26?ref=qr')
  for (const path of ['Summer26', 'SUMMER26', 'summer26']) {
    expect((await app.call('GET', `/${path}`)).headers.get('location')).toBe(URL)
  }
  // The endpoints of the contract have the code.
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.items).toMatchObject([
    { code: 'SUMMER26', short_url: 'http://hop.test/SUMMER26', hit_count: 3 },
  ])
  const again = await free.post(LINKS, { url: URL, code: 'sumMER26' })
  expect([again.status, again.invalid]).toEqual([422, ['code']])
  const { body } = await app.call('POST', '/api/shorten', {
    key: 'free',
    json: { url: `${URL}/2`, code: 'winter26' },
  })
  expect(body).toMatchObject({ code: 'WINTER26', short_url: 'http://hop.test/WINTER26' })
  expect(await linkAt(app, 'WINTER26')).toMatchObject({ display_url: 'http://hop.test/winter26' })
  expect(problemsOf(app)).toEqual([])
})

test('an account that can have codes only is told what helps: its owner the setting, others the cure', async () => {
  await using app = await testApp({ env: { ALIASES: 'owners' } })
  const free = await makeMember(app, 'free@example.com')
  const sent = { url: URL, code: 'spring-team' }
  const refused = await free.post(LINKS, sent)
  expect([refused.status, refused.invalid]).toEqual([422, ['code']])
  expect(refused.text).toContain('such as springteam, or ask an owner of this service')
  expect(refused.text).not.toContain('ALIASES')
  expect((await free.get(`${LINKS}/code?code=spring-team`)).text).toContain('springteam')
  app.administer(({ db }) => db.run('UPDATE people SET is_owner = 1'))
  expect((await free.post(LINKS, sent)).text).toContain('ALIASES=all')
  expect(await total(app)).toBe(0)
})
