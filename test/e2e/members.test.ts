import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { inviteTo as invite, makeMember } from '../support/members.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const MEMBERS = '/app/account/members'

const pathIn = (seen: Seen): string =>
  /value="[^"]*(\/app\/join\/[\w-]+)"/.exec(seen.text)?.[1] ?? ''

/** Ann, and Bob as a member of her account, who has no other one. */
async function annAndBob(app: TestApp) {
  const ann = await makeMember(app, ANN)
  const bob = new Visitor(app)
  const path = await invite(ann, BOB)
  const joined = await bob.post(path, { password: PASSWORD })
  expect([joined.status, joined.location]).toEqual([303, '/app/links'])
  return { ann, bob, path }
}

const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

const remove = (by: Visitor, id: number, from = `${MEMBERS}/${id}/remove`): Promise<Seen> =>
  by.post(`${MEMBERS}/${id}/remove`, {}, { from })

/** What the pages of a session show. */
const urlsSeenBy = async (visitor: Visitor): Promise<string> =>
  (await visitor.get('/app/links')).text

test('an invited person sees, creates and deletes the links of the account', async () => {
  await using app = await testApp()
  const { ann, bob } = await annAndBob(app)
  await ann.post('/app/links', { url: 'https://example.com/of-ann' })
  await bob.post('/app/links', { url: 'https://example.com/of-bob' })
  for (const one of [ann, bob]) {
    expect(await urlsSeenBy(one)).toContain('/of-ann')
    expect(await urlsSeenBy(one)).toContain('/of-bob')
  }
  const seen = await ann.get(MEMBERS)
  expect([seen.text.includes(ANN), seen.text.includes(BOB)]).toEqual([true, true])
})

test('an invitation works once, only for its address, and not after its withdrawal', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { ann, path } = await annAndBob(app)
  const eve = new Visitor(app, { from: '192.0.2.60' })
  expect((await eve.get(path)).status).toBe(404)
  await eve.signUp('eve@example.com')

  const forDan = await invite(ann, 'dan@example.com')
  const page = await eve.get(forDan)
  expect(page.text).toContain('This invitation is for dan@example.com')
  const refused = await eve.post(forDan, {}, { from: '/app/join/none' })
  expect(refused.status).toBe(403)
  const forged = new Visitor(app, { from: '192.0.2.61' })
  const sent = await forged.post(forDan, { email: 'eve2@example.com', password: PASSWORD })
  expect(sent.status).toBe(303)
  expect(idOf(app, 'eve2@example.com')).toBe(0)

  const forZoe = await invite(ann, 'zoe@example.com')
  const list = await ann.get(MEMBERS)
  const inviteId = /name="invite" value="(\d+)"/.exec(list.text)?.[1] ?? ''
  await ann.post(`${MEMBERS}/withdraw`, { invite: inviteId }, { from: MEMBERS })
  expect((await new Visitor(app).get(forZoe)).status).toBe(404)
})

test('a person of two accounts opens either, and a page of one changes nothing of the other', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  await bob.post('/app/links', { url: 'https://example.com/of-bob' })
  const pageOfBob = await bob.get('/app/links')

  const path = await invite(ann, BOB)
  expect((await bob.get(path)).text).toContain(ANN)
  expect((await bob.post(path, {})).location).toBe('/app/links')
  expect(await urlsSeenBy(bob)).not.toContain('of-bob')

  const stale = { url: 'https://example.com/stale', csrf: pageOfBob.csrf }
  expect((await bob.post('/app/links', stale)).status).toBe(403)
  for (const one of [ann, bob]) expect(await urlsSeenBy(one)).not.toContain('stale')

  const account = String(idOf(app, BOB))
  const opened = await bob.post('/app/account/open', { account, csrf: pageOfBob.csrf })
  expect(opened.location).toBe('/app/links')
  expect(await urlsSeenBy(bob)).toContain('of-bob')
  // The next sign-in opens it, too.
  const again = new Visitor(app)
  await again.signIn(BOB)
  expect(await urlsSeenBy(again)).toContain('of-bob')
})

test('a person who is signed out joins with a sign-in, and keeps the own account', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  await makeMember(app, BOB)
  const path = await invite(ann, BOB)
  const bob = new Visitor(app)
  // The address has a password already: the invitation does not replace it.
  const taken = await bob.post(path, { password: 'another purple otter' })
  expect(taken.invalid).toEqual(['email'])
  const signIn = /href="(\/app\/sign-in\?next=[^"]+)"/.exec((await bob.get(path)).text)?.[1] ?? ''
  const next = new URL(signIn, app.url).searchParams.get('next') ?? ''
  const seen = await bob.post('/app/sign-in', { email: BOB, password: PASSWORD, next })
  expect(seen.location).toBe(path)
  expect((await bob.post(path, {})).location).toBe('/app/links')
  expect((await bob.get('/app/links')).text).toContain(`Open ${BOB}`)
})

test('a removed person loses the sessions, the open pages and the invitations at once', async () => {
  await using app = await testApp()
  const { ann, bob } = await annAndBob(app)
  await bob.post('/app/links', { url: 'https://example.com/of-bob' })
  const open = await bob.get('/app/links')
  const path = await invite(bob, 'dan@example.com')
  const removed = await remove(ann, idOf(app, BOB))
  expect(removed.location).toBe(`${MEMBERS}?done=removed`)

  const late = { url: 'https://example.com/late', csrf: open.csrf }
  expect((await bob.post('/app/links', late)).location).toBe('/app/sign-in')
  expect((await bob.get('/app/links')).location).toContain('/app/sign-in')
  expect((await new Visitor(app).get(path)).status).toBe(404)
  const again = new Visitor(app)
  expect((await again.signIn(BOB)).invalid).toEqual(['password'])
  const shown = await urlsSeenBy(ann)
  expect([shown.includes('/of-bob'), shown.includes('/late')]).toEqual([true, false])
  // The address is free: it can be invited again, as a new person.
  const next = await invite(ann, BOB)
  expect((await again.post(next, { password: PASSWORD })).status).toBe(303)
})

test('a person who is removed from one account stays in the other, with password and sessions', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  const elsewhere = new Visitor(app)
  await elsewhere.signIn(BOB)
  await bob.post(await invite(ann, BOB), {})
  await remove(ann, idOf(app, BOB))
  expect((await bob.get('/app/links')).status).toBe(303)
  expect((await elsewhere.get('/app/links')).status).toBe(200)
  const again = new Visitor(app)
  expect((await again.signIn(BOB)).location).toBe('/app/links')
  expect((await again.get('/app/links')).text).not.toContain(ANN)
})

test.each([
  ['remove each other', 1],
  ['leave', 0],
])('two admins who %s at once: one remains', async (_, other) => {
  await using app = await testApp()
  const { ann, bob } = await annAndBob(app)
  const ids = [idOf(app, ANN), idOf(app, BOB)]
  const csrf = [(await ann.get(MEMBERS)).csrf, (await bob.get(MEMBERS)).csrf]
  const seen = await Promise.all(
    [ann, bob].map((one, n) =>
      one.post(`${MEMBERS}/${ids[(n + other) % 2]}/remove`, { csrf: csrf[n] ?? '' }),
    ),
  )
  // A removed admin may be signed out before their own request is judged.
  if (other === 0) expect(seen.map(({ status }) => status).sort()).toEqual([303, 422])
  const left = app.administer(({ accounts }) => accounts.listMembers(ids[0] ?? 0))
  expect(left.map(({ role }) => role)).toEqual(['admin'])
})

test('an invitation accepted twice at once makes one member', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const path = await invite(ann, BOB)
  const visitors = [new Visitor(app), new Visitor(app)]
  const seen = await Promise.all(visitors.map((one) => one.post(path, { password: PASSWORD })))
  expect(seen.map(({ status }) => status).sort()).toEqual([303, 404])
  const members = app.administer(({ accounts }) => accounts.listMembers(idOf(app, ANN)))
  expect(members.map(({ email }) => email)).toEqual([ANN, BOB])
})

test('a member has their own password and sessions', async () => {
  await using app = await testApp()
  const { ann, bob } = await annAndBob(app)
  const change = { current: PASSWORD, password: 'eight purple otters' }
  await bob.post('/app/account/security/password', change, { from: '/app/account' })
  expect((await ann.get('/app/links')).status).toBe(200)
  expect((await new Visitor(app).signIn(ANN)).location).toBe('/app/links')
  expect((await new Visitor(app).signIn(BOB)).invalid).toEqual(['password'])
  await ann.post('/app/account/sessions/end-others', {}, { from: '/app/account' })
  expect((await bob.get('/app/links')).status).toBe(200)
})

test('deleting an account removes members without another one, and no others', async () => {
  await using app = await testApp()
  const { ann } = await annAndBob(app)
  const zoe = await makeMember(app, 'zoe@example.com')
  await zoe.post(await invite(ann, 'zoe@example.com'), {})
  await ann.post('/app/account/delete', { current: PASSWORD })
  expect([idOf(app, ANN), idOf(app, BOB)]).toEqual([0, 0])
  const again = new Visitor(app)
  expect((await again.signIn('zoe@example.com')).location).toBe('/app/links')
})

test('a disabled account ends the sessions in it, and its members open their others', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  await bob.post(await invite(ann, BOB), {})
  app.administer(({ accounts, db }) => {
    db.run('DELETE FROM sessions WHERE account_id = ?', [idOf(app, ANN)])
    accounts.change(idOf(app, ANN), { disabledAt: app.now() })
  })
  expect((await bob.get('/app/links')).status).toBe(303)
  const again = new Visitor(app)
  expect((await again.signIn(BOB)).location).toBe('/app/links')
  expect((await new Visitor(app).signIn(ANN)).invalid).toEqual(['password'])
})

test('the owner of the service invites to an account, and removes and resets its members', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const ann = await makeMember(app, ANN)
  const zoe = await makeMember(app, 'zoe@example.com')
  const page = `/app/service/accounts/${idOf(app, ANN)}`
  const send = (action: string, fields: Record<string, string>) =>
    owner.post(`${page}/${action}`, fields, { from: page })
  const bob = new Visitor(app)
  const path = pathIn(await send('invite-member', { email: BOB }))
  expect((await bob.post(path, { password: PASSWORD })).location).toBe('/app/links')

  const reset = await send('reset', { person: String(idOf(app, BOB)) })
  const resetPath = /(\/app\/reset\/[\w-]+)/.exec(reset.text)?.[1] ?? ''
  await bob.post(resetPath, { password: 'eight purple otters' })
  expect((await ann.get('/app/links')).status).toBe(200)
  expect((await new Visitor(app).signIn(ANN)).location).toBe('/app/links')

  // A person of another account is no member of this one.
  for (const action of ['reset', 'remove-member']) {
    expect((await send(action, { person: String(idOf(app, 'zoe@example.com')) })).status).toBe(404)
  }
  await send('remove-member', { person: String(idOf(app, ANN)) })
  expect((await ann.get('/app/links')).status).toBe(303)
  expect((await send('remove-member', { person: String(idOf(app, BOB)) })).status).toBe(409)
  expect([(await bob.get('/app/links')).status, (await zoe.get('/app/links')).status]).toEqual([
    200, 200,
  ])
})

test('keys name the person who created them, and stay when the person is removed', async () => {
  await using app = await testApp()
  const { ann, bob } = await annAndBob(app)
  const made = await bob.post(
    '/app/keys/new',
    { name: 'Shop', scope: 'write' },
    { from: '/app/keys' },
  )
  const key = /value="(hop_\w+)"/.exec(made.text)?.[1] ?? ''
  await remove(ann, idOf(app, BOB))
  expect((await ann.get('/app/keys')).text).toContain(BOB)
  const json = { url: 'https://example.com/by-key' }
  expect((await app.call('POST', '/api/shorten', { key, json })).status).toBe(201)
})

test('signing out works on a page of the account that was open before', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  const { csrf } = await bob.get('/app/links')
  await bob.post(await invite(ann, BOB), {})
  const dark = await bob.post('/app/theme', { theme: 'dark', csrf })
  expect(dark.status).toBe(303)
  expect((await bob.post('/app/sign-out', { csrf })).location).toContain('/app/sign-in')
  expect((await bob.get('/app/links')).status).toBe(303)
})

test('inviting and removing need the password after ten minutes', async () => {
  await using app = await testApp()
  const { ann } = await annAndBob(app)
  app.advance(11 * 60_000)
  const seen = await ann.post(`${MEMBERS}/invite`, { email: 'dan@example.com' }, { from: MEMBERS })
  expect([seen.status, pathIn(seen)]).toEqual([403, ''])
  expect((await remove(ann, idOf(app, BOB))).status).toBe(403)
  const form = { email: 'dan@example.com', role: 'viewer', current: PASSWORD }
  expect(pathIn(await ann.post(`${MEMBERS}/invite`, form, { from: MEMBERS }))).not.toBe('')
})
