import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { type Body, eventually, type TestApp, testApp } from '../support/app.ts'
import type { Seen, Visitor } from '../support/dashboard.ts'
import { openBeside, problemsOf } from '../support/database.ts'
import { addKey, disable, inviteTo, makeMember, operator } from '../support/members.ts'

/** Links go from the account of Pro to that of Enterprise, by Pro, who is an admin of both. */

const PRO = 'pro@example.com'
const ENTERPRISE = 'enterprise@example.com'
const MOVE = '/app/links/move'

const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

const open = (visitor: Visitor, id: number): Promise<Seen> =>
  visitor.post('/app/account/open', { account: String(id) }, { from: '/app/links' })

/** `role`: of Pro in the account of Enterprise. */
async function proAndEnterprise(app: TestApp, role = 'admin') {
  const pro = await makeMember(app, PRO)
  const enterprise = await makeMember(app, ENTERPRISE)
  const joined = await pro.post(await inviteTo(enterprise, PRO, role), {})
  expect(joined.location).toBe('/app/links')
  const ids = { from: idOf(app, PRO), to: idOf(app, ENTERPRISE) }
  await open(pro, ids.from)
  return { pro, enterprise, ...ids }
}

const moveCodes = (by: Visitor, codes: readonly string[], to: number): Promise<Seen> => {
  const from = `${MOVE}?codes=${codes.join(',')}`
  return by.post(MOVE, { account: String(to), at: `codes=${codes.join(',')}` }, { from })
}

const codesOf = async (app: TestApp, key: string, query = ''): Promise<unknown[]> => {
  const { body } = await app.call('GET', `/api/list?${query}`, { key })
  return (body.items as Body[]).map(({ code }) => code)
}

const patch = (app: TestApp, code: string, json: object, key = 'pro') =>
  app.call('PATCH', `/api/links/${code}`, { key, json })

const follow = async (app: TestApp, path: string) =>
  (await app.call('GET', path)).headers.get('location')

test('the selected links go to the other account, with all that belongs to them', async () => {
  await using app = await testApp({ env: { ENTERPRISE_LINKS_MAX: '5', IMPORT_ALIASES: 'all' } })
  const { pro, enterprise, from, to } = await proAndEnterprise(app)
  const { code, passcode } = await app.shorten('https://example.com/menu', 'pro')
  const other = await app.shorten('https://example.com/stays', 'pro')
  const destinations = [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }]
  const properties = { title: 'Spring menu', tags: ['poster'], note: 'at the door', destinations }
  expect((await patch(app, code, { ...properties, aliases: ['spring-menu'] })).status).toBe(200)
  const settings = `/app/links/${code}/settings`
  await pro.post(settings, { was_public: 'off', public: '1' })
  const publicPath = /\/app\/shared\/[\w-]+/.exec((await pro.get(settings)).text)?.[0] ?? ''
  for (let n = 0; n < 3; n++) await follow(app, `/${code}`)
  expect((await app.call('GET', `/api/lookup/${code}`)).body.hit_count).toBe(3)

  const chosen = await pro.post(
    '/app/links/batch',
    { code: [code], action: 'move', at: '' },
    { from: '/app/links' },
  )
  expect(chosen.location).toBe(`${MOVE}?codes=${code}`)
  const page = await pro.get(chosen.location ?? '')
  expect(page.text).toContain('Move 1 link to another account')
  const moved = await moveCodes(pro, [code], to)
  expect([moved.status, moved.location]).toEqual([303, `/app/links?done=moved&n=1&to=${to}`])
  const { text } = await pro.get(moved.location ?? '')
  const name = app.administration.data.accounts.findById(Number(to))?.name
  expect(text).toContain(`1 link moved to ${name}.`)
  // From there to the links in the other account, and only in one of the person's own.
  expect(text).toContain('See these links')
  const { text: foreign } = await pro.get('/app/links?done=moved&n=1&to=999')
  expect(foreign).not.toContain('See these links')

  expect(await codesOf(app, 'pro')).toEqual([other.code])
  expect(await codesOf(app, 'enterprise')).toEqual([code])
  expect(await codesOf(app, 'enterprise', 'search=menu')).toEqual([code])
  expect(await codesOf(app, 'pro', 'search=menu')).toEqual([])
  for (const query of ['q=spring', 'tag=poster', 'q=spring-menu']) {
    expect((await enterprise.get(`/app/links?${query}`)).text).toContain('1 of 1 link')
    expect((await pro.get(`/app/links?${query}`)).text).toContain('0 of 1 link')
  }
  const view = await app.call('GET', `/api/links/${code}`, { key: 'enterprise' })
  expect(view.body).toMatchObject({ ...properties, aliases: ['spring-menu'], hit_count: 3 })
  expect(await follow(app, '/spring-menu')).toBe('https://example.com/menu')
  expect((await app.call('GET', publicPath)).status).toBe(200)
  await eventually('both hits are counted', async () => {
    const { body } = await app.call('GET', `/api/lookup/${code}`)
    return body.hit_count === 4
  })
  // The former account changes nothing any more, also with the passcode.
  const json = { code, passcode, url: 'https://evil.example/' }
  expect((await app.call('POST', '/api/update', { key: 'pro', json })).status).toBe(403)
  expect((await patch(app, code, { title: 'x' })).status).toBe(404)
  expect((await app.call('GET', `/api/links/${code}`, { key: 'pro' })).status).toBe(404)
  const update = { ...json, url: 'https://example.com/new-menu' }
  expect((await app.call('POST', '/api/update', { key: 'enterprise', json: update })).status).toBe(
    200,
  )
  expect(problemsOf(app)).toEqual([])

  // And back.
  await open(pro, to)
  expect((await moveCodes(pro, [code], from)).location).toBe(`/app/links?done=moved&n=1&to=${from}`)
  expect(await codesOf(app, 'enterprise')).toEqual([])
  expect(problemsOf(app)).toEqual([])
})

/** The sum of all time on the page of analytics. */
async function allTime(visitor: Visitor): Promise<string | undefined> {
  const { text } = await visitor.get('/app/analytics')
  return /[\d,]+ all time[^.<]*/.exec(text)?.[0]
}

test('hits follow the link, and the former account keeps what it has counted', async () => {
  await using app = await testApp()
  const { pro, enterprise, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  for (let n = 0; n < 3; n++) await follow(app, `/${code}`)
  await eventually('the hits are counted', async () => (await allTime(pro)) === '3 all time')
  await moveCodes(pro, [code], to)
  for (let n = 0; n < 2; n++) await follow(app, `/${code}`)
  const sum = '5 all time, of which 3 are from elsewhere, without dates'
  await eventually('further hits are counted', async () => (await allTime(enterprise)) === sum)
  expect(await allTime(pro)).toBe('3 all time')
  const { text } = await enterprise.get(`/app/links/${code}`)
  expect(text).toContain('5 all time')
  expect(problemsOf(app)).toEqual([])
})

test('visits of a printed code remain scans', async () => {
  await using app = await testApp()
  const { pro, enterprise, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  await pro.get(`/app/links/${code}/qr.svg?ref=flyer`)
  await follow(app, `/${code}?ref=flyer`)
  await moveCodes(pro, [code], to)
  await eventually('the visit is stored', async () => {
    const path = `/api/links/${code}/visits?by=referrer`
    return (await app.call('GET', path, { key: 'enterprise' })).body.known === 1
  })
  const { text } = await enterprise.get(`/app/links/${code}`)
  const [, card = ''] = /id="panel-scans">([\s\S]*?)<\/section>/.exec(text) ?? []
  expect(card).toContain('flyer')
})

test('all links of a tag go in parts of a bulk', async () => {
  await using app = await testApp()
  const { pro, from, to } = await proAndEnterprise(app)
  const lines = Array.from({ length: 1205 }, (_, n) =>
    JSON.stringify({ url: `https://example.com/${n}`, tags: n < 1203 ? ['old'] : [] }),
  )
  const { importBatch } = (await import('../../src/cli/moving.ts')).movingCommands
  for (const some of [lines.slice(0, 1000), lines.slice(1000)]) {
    await importBatch(app.administration, { account: PRO, lines: some, dryRun: false })
  }
  const all = { all: '1', action: 'move', at: '?tag=old' }
  const chosen = await pro.post('/app/links/batch', all, { from: '/app/links' })
  expect(chosen.location).toBe(`${MOVE}?tag=old`)
  expect((await pro.get(chosen.location ?? '')).text).toContain('Move 1,203 links')
  const fields = { account: String(to), at: 'tag=old' }
  const first = await pro.post(MOVE, fields, { from: `${MOVE}?tag=old` })
  expect(first.location).toBe(`${MOVE}?tag=old&moved=1000`)
  const page = await pro.get(first.location ?? '')
  expect(page.text).toContain('1,000 links moved')
  expect(page.text).toContain('Move 203 links')
  const second = await pro.post(MOVE, fields, { from: first.location ?? '' })
  expect(second.location).toStartWith('/app/links?done=moved&n=203')
  const counts = app.administer(({ accounts }) =>
    [from, to].map((id) => accounts.findById(id)?.linkCount),
  )
  expect(counts).toEqual([2, 1203])
  expect(problemsOf(app)).toEqual([])
})

test('only an admin of both accounts moves links', async () => {
  await using app = await testApp()
  const { pro, enterprise, from, to } = await proAndEnterprise(app, 'editor')
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  expect((await pro.get('/app/links')).text).not.toContain('value="move"')
  expect((await pro.get(`${MOVE}?codes=${code}`)).text).toContain('admin of no other account')
  const refused = await moveCodes(pro, [code], to)
  expect([refused.status, refused.text.includes('Choose an account')]).toEqual([422, true])
  // An account that Pro is no member of, and the account itself.
  const stranger = await makeMember(app, 'stranger@example.com')
  for (const id of [idOf(app, 'stranger@example.com'), from, 0]) {
    expect((await moveCodes(pro, [code], id)).status).toBe(422)
  }
  // The links of another account.
  const strange = await stranger.post('/app/links', { url: 'https://example.com/strange' })
  const ofStranger = /\/app\/links\/([A-Z\d]{8})/.exec(strange.text)?.[1] ?? ''
  await enterprise.post(
    `/app/account/members/${idOf(app, PRO)}/role`,
    { role: 'admin' },
    { from: '/app/account/members' },
  )
  expect((await pro.get('/app/links')).text).toContain('value="move"')
  expect((await moveCodes(pro, [ofStranger], to)).status).toBe(404)
  expect(await codesOf(app, 'pro')).toEqual([code])
  expect(await codesOf(app, 'enterprise')).toEqual([])
})

test('the role is compared again where the links are moved', async () => {
  await using app = await testApp()
  const { pro, enterprise, from, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  const { id } = app.administer(
    ({ db }) => db.query<{ id: number }, []>('SELECT id FROM links').get() ?? { id: 0 },
  )
  const by = idOf(app, PRO)
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const ownersOnly = { aliases: true, destinations: true }
  const { links, members } = app.administration.data
  const move = (who: number, target = to) =>
    links.handOver({
      author: { accountId: from, by: { personId: who }, now: app.now() },
      ids: [id],
      to: target,
      quota,
      ownersOnly,
    })
  for (const stranger of [idOf(app, ENTERPRISE), 0]) {
    await expect(move(stranger)).rejects.toMatchObject({ code: 'sign_in_needed' })
  }
  expect(await move(by, from)).toBe('not_allowed')
  await members.setRole({ author: operator(app, to), personId: by, role: 'editor' })
  expect(await move(by)).toBe('not_allowed')
  await members.setRole({ author: operator(app, to), personId: by, role: 'admin' })
  disable(app, ENTERPRISE)
  expect(await move(by)).toBe('not_allowed')
  expect((await moveCodes(pro, [code], to)).status).toBe(422)
  expect((await enterprise.get('/app/links')).status).toBe(303)
  expect(await codesOf(app, 'pro')).toEqual([code])
  const { accounts } = app.administration.data
  await accounts.enable({ author: operator(app, to) })
  expect(await move(by)).toMatchObject([{ id, code, accountId: to, fromAccountId: from }])
})

test('links of an account whose links the owner has disabled cannot be moved away', async () => {
  await using app = await testApp()
  const { from, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  const by = idOf(app, PRO)
  app.administer(({ accounts }) => accounts.change(from, { linksDisabledAt: app.now() }))
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const ownersOnly = { aliases: true, destinations: true }
  const moved = await app.administration.data.links.handOver({
    author: { accountId: from, by: { personId: by }, now: app.now() },
    ids: [1],
    to,
    quota,
    ownersOnly,
  })
  expect(moved).toBe('not_allowed')
  app.administer(({ accounts }) => accounts.change(from, { linksDisabledAt: null }))
  expect(await codesOf(app, 'pro')).toEqual([code])
})

test('a full account refuses the links, and nothing is moved', async () => {
  const env = { ENTERPRISE_LINKS_MAX: '2', ENTERPRISE_URL_BYTES_MAX: '200' }
  await using app = await testApp({ env })
  const { pro, to } = await proAndEnterprise(app)
  await app.shorten('https://example.com/1', 'enterprise')
  const codes = []
  for (const n of [2, 3]) codes.push((await app.shorten(`https://example.com/${n}`, 'pro')).code)
  const long = (await app.shorten(`https://example.com/${'x'.repeat(200)}`, 'pro')).code
  for (const [some, most] of [
    [codes, '2 links'],
    [[long], '200 B of URLs'],
  ] as const) {
    const seen = await moveCodes(pro, some, to)
    expect([seen.status, seen.notices]).toEqual([422, ['alert']])
    expect(seen.text).toContain(`stores at most ${most}`)
  }
  expect(await codesOf(app, 'pro')).toHaveLength(3)
  expect((await moveCodes(pro, codes.slice(0, 1), to)).status).toBe(303)
  expect(problemsOf(app)).toEqual([])
})

test('of two moves of a link at once, one wins', async () => {
  await using app = await testApp()
  const { pro, from, to } = await proAndEnterprise(app)
  const third = await makeMember(app, 'third@example.com')
  await pro.post(await inviteTo(third, PRO), {})
  await open(pro, from)
  const codes = []
  for (let n = 0; n < 20; n++)
    codes.push((await app.shorten(`https://example.com/${n}`, 'pro')).code)
  const targets = [to, idOf(app, 'third@example.com')]
  const { csrf } = await pro.get(MOVE)
  const at = `codes=${codes.join(',')}`
  const seen = await Promise.all(
    targets.map((account) => pro.post(MOVE, { account: String(account), at, csrf })),
  )
  const isDone = ({ location }: { location: string | null }) =>
    /done=moved&n=20&/.test(location ?? '')
  expect(seen.filter(isDone)).toHaveLength(1)
  const key = addKey(app, 'third@example.com', { name: 'test', scope: 'read' })
  const held = [await codesOf(app, 'enterprise'), await codesOf(app, key)]
  expect(held.map(({ length }) => length).sort()).toEqual([0, 20])
  expect(problemsOf(app)).toEqual([])
})

test('a change that the former account has begun does not reach the moved link', async () => {
  await using app = await testApp()
  const { pro, from, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  await moveCodes(pro, [code], to)
  using db = openBeside(app.dataDir)
  const { id = 0 } =
    db.query<{ id: number }, [string]>('SELECT id FROM links WHERE code = ?').get(code) ?? {}
  const { links, publicPages } = app.administration.data
  const author = { accountId: from, by: 'operator', now: app.now() } as const
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const change = { id, url: 'https://evil.example/', urlKey: new Uint8Array(16), quota, author }
  expect(await links.changeUrl(change)).toBeUndefined()
  expect(await links.delete({ id, author })).toBeUndefined()
  expect(await links.patch({ ids: [id], patch: { title: 'x' }, quota, author })).toMatchObject({
    links: [],
  })
  expect(await links.scheduleDeletion({ ids: [id], deleteAt: 1, author })).toEqual([])
  const page = { author, linkId: id, seed: new Uint8Array(32), isNew: false, showsUrl: true }
  expect(await publicPages.share(page)).toBe(false)
  await publicPages.share({ ...page, author: { ...author, accountId: to } })
  await publicPages.unshare({ author, linkId: id })
  expect(publicPages.findByLink(id)).toMatchObject({ code })
  expect(await follow(app, `/${code}`)).toBe('https://example.com/menu')
})

test('a link that will be deleted is not moved', async () => {
  await using app = await testApp()
  const { pro, from, to } = await proAndEnterprise(app)
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  const deleted = { code: [code], action: 'delete', at: '' }
  await pro.post('/app/links/batch', deleted, { from: '/app/links' })
  const seen = await moveCodes(pro, [code], to)
  expect([seen.status, seen.location]).toEqual([422, null])
  await pro.post('/app/links/undo', { code: [code] }, { from: '/app/links' })
  expect(await codesOf(app, 'pro')).toEqual([code])
  const counts = app.administer(({ accounts }) =>
    [from, to].map((id) => accounts.findById(id)?.linkCount),
  )
  expect(counts).toEqual([1, 0])
})

/** What only accounts of owners have, each with the host and path that redirects then. */
const RIGHTS = [
  ['the domain', { domain: 'go.example' }],
  ['an alias', { aliases: ['login'] }],
  ['an alias on the domain', { domain_aliases: { 'go.example': ['login'] } }],
  ['destinations', { destinations: [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }] }],
] as const

test.each(RIGHTS)('links with %s of an owner’s account go to no other account', async (_, json) => {
  await using app = await testApp({ env: { ALIASES: 'owners', DESTINATION_RULES: 'owners' } })
  const { pro, enterprise, from, to } = await proAndEnterprise(app)
  await addDomain(app.administration, operatorOf(app.administration), { host: 'go.example' })
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  const plain = await app.shorten('https://example.com/plain', 'pro')
  const setOwner = (table: string, id: number, isOwner: number) =>
    app.administer(({ db }) =>
      db.run(`UPDATE ${table} SET is_owner = ? WHERE id = ?`, [isOwner, id]),
    )
  setOwner('accounts', from, 1)
  expect((await patch(app, code, json)).status).toBe(200)
  const refused = await moveCodes(pro, [plain.code, code], to)
  expect([refused.status, refused.notices]).toEqual([422, ['alert']])
  expect(await codesOf(app, 'enterprise')).toEqual([])
  // The writer decides, whatever a page has read before.
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const ownersOnly = { aliases: true, destinations: true }
  const ids = app.administer(({ db }) =>
    db
      .query<{ id: number }, []>('SELECT id FROM links')
      .all()
      .map(({ id }) => id),
  )
  const by = idOf(app, PRO)
  const author = { accountId: from, by: { personId: by }, now: app.now() }
  const { handOver } = app.administration.data.links
  const moved = await handOver({ author, ids, to, quota, ownersOnly })
  expect(typeof moved).toBe('string')
  expect(await codesOf(app, 'pro')).toHaveLength(2)

  // To another account of an owner, and by an owner to every account.
  setOwner('accounts', to, 1)
  expect((await moveCodes(pro, [code], to)).status).toBe(303)
  await open(pro, to)
  setOwner('accounts', from, 0)
  expect((await moveCodes(pro, [code], from)).status).toBe(422)
  setOwner('people', by, 1)
  expect((await moveCodes(pro, [code], from)).status).toBe(303)
  expect(await codesOf(app, 'enterprise')).toEqual([])
  expect((await enterprise.get('/app/links')).status).toBe(200)
  expect(problemsOf(app)).toEqual([])
})

test('a link keeps a domain that its new account may use', async () => {
  await using app = await testApp()
  const { pro, to } = await proAndEnterprise(app)
  await addDomain(app.administration, operatorOf(app.administration), {
    host: 'all.example',
    for: 'all',
  })
  await addDomain(app.administration, operatorOf(app.administration), {
    host: 'theirs.example',
    for: to,
  })
  const { code } = await app.shorten('https://example.com/menu', 'pro')
  expect((await patch(app, code, { domain: 'all.example' })).status).toBe(200)
  expect((await moveCodes(pro, [code], to)).status).toBe(303)
  const kept = { domain: 'theirs.example' }
  expect((await patch(app, code, kept, 'enterprise')).body).toMatchObject(kept)
  await open(pro, to)
  expect((await moveCodes(pro, [code], idOf(app, PRO))).status).toBe(422)
})
