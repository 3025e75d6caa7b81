import { expect, test } from 'bun:test'
import { addDomain, setDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'

/** A change is refused for what it adds, never for what a link has already. */

const CODE = 'AAAAAA'
const SHOP = 'https://shop.example/old'
const RULES = [
  { when: { os: ['ios'] }, url: 'https://example.com/ios' },
  { when: { os: ['android'] }, url: SHOP },
  { when: { os: ['linux'] }, url: 'https://shop.example/second' },
]
const NEW_RULE = { when: { os: ['macos'] }, url: 'https://example.com/mac' }
const BAD_RULE = { when: { os: ['macos'] }, url: 'https://shop.example/new' }

/** What happens to the host `shop.example` after links have it. */
const LATER = [
  [
    'is blocked',
    (app: TestApp) =>
      app.administration.data.blockedHosts.block({
        author: operatorOf(app.administration),
        host: 'shop.example',
        reason: 'x',
      }),
  ],
  [
    'becomes a domain of the service',
    (app: TestApp) =>
      addDomain(app.administration, operatorOf(app.administration), { host: 'shop.example' }),
  ],
] as const

const CHANGES = [
  ['a further destination', { destinations: [...RULES, NEW_RULE] }, 200],
  ['another order', { destinations: RULES.toReversed() }, 200],
  ['other conditions', { destinations: [{ when: { os: ['macos'] }, url: SHOP }] }, 200],
  ['one destination less', { destinations: RULES.slice(1) }, 200],
  ['none', { destinations: [] }, 200],
  ['the same expired_url with a title', { expired_url: SHOP, title: 'x' }, 200],
  ['the same URL', { url: SHOP }, 200],
  ['a new destination on the host', { destinations: [...RULES, BAD_RULE] }, 422],
  ['another expired_url on the host', { expired_url: `${SHOP}er` }, 422],
  ['another URL on the host', { url: `${SHOP}er` }, 422],
] as const

test.each(
  LATER.flatMap(([later, act]) => CHANGES.map((change) => [later, ...change, act] as const)),
)('a host that %s: %s', async (_, name, json, status, act) => {
  await using app = await testApp()
  const { passcode } = await app.claim(CODE, SHOP)
  const patch = (change: object) =>
    app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json: change })
  const before = await patch({ destinations: RULES, expired_url: SHOP })
  expect(before.status).toBe(200)
  await act(app)
  const changed =
    'url' in json
      ? await app.call('POST', '/api/update', {
          key: 'free',
          json: { code: CODE, passcode, ...json },
        })
      : await patch(json)
  expect([name, changed.status]).toEqual([name, status])
  if (status === 200) expect(changed.body).toMatchObject({ ...json })
  const { body } = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  if (status !== 200) expect(body).toEqual(before.body)
  expect(problemsOf(app)).toEqual([])
})

test('values beyond a limit can be kept and made fewer, and no further one is added', async () => {
  await using app = await testApp()
  await app.claim(CODE, 'https://example.com/1')
  const tags = Array.from({ length: 25 }, (_, n) => `tag-${n}`).sort()
  app.administer(({ db }) =>
    db.run('UPDATE links SET tags = ?, starts_at = 2000, expires_at = 1000', [
      JSON.stringify(tags),
    ]),
  )
  const { links } = app.administration.data
  const change = (patch: object) =>
    links.patch({
      ids: [1],
      patch,
      quota: { linksMax: 0, urlBytesMax: 0 },
      author: { accountId: 1, by: 'operator', now: app.now() },
    })
  for (const patch of [{ title: 'x' }, { removeTags: ['tag-3'] }, { tags: tags.slice(5) }]) {
    expect(await change(patch)).toMatchObject({ links: [{ code: CODE }] })
  }
  expect(await change({ addTags: ['one-more'] })).toBe('too_many_tags')
  expect(await change({ starts_at: 3000 })).toBe('bad_times')
})

test('the form of a domain keeps a page that has become one of the service', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const rootUrl = 'https://www.example/'
  await addDomain(app.administration, operatorOf(app.administration), {
    host: 'go.example',
    rootUrl,
    notFoundUrl: rootUrl,
  })
  await addDomain(app.administration, operatorOf(app.administration), { host: 'www.example' })
  const all = { host: 'go.example', rootUrl, notFoundUrl: rootUrl, codes: 'all' } as const
  expect(await setDomain(app.administration, operatorOf(app.administration), all)).toMatchObject({
    codes: 'all',
    rootUrl,
  })
  const other = { host: 'go.example', rootUrl: `${rootUrl}other` }
  await expect(
    setDomain(app.administration, operatorOf(app.administration), other),
  ).rejects.toThrow('root_url')
  expect((await owner.get('/app/service/domains')).status).toBe(200)
})
