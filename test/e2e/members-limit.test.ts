import { expect, test } from 'bun:test'
import { operator } from '../../src/accounts/operations/asked.ts'
import { invite } from '../../src/accounts/operations/members.ts'
import { memberCommands } from '../../src/cli/members.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { inviteTo, makeMember } from '../support/members.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const MEMBERS = '/app/account/members'

const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

test('an account has at most 100 members and invitations', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  app.administer(({ accounts }) => {
    const to = { accountId: idOf(app, ANN), role: 'admin', passwordHash: null } as const
    for (let n = 0; n < 98; n++) {
      accounts.createMember({ ...to, email: `${n}@example.com`, createdAt: app.now() })
    }
  })
  expect(await inviteTo(ann, BOB)).toStartWith('/app/join/')
  const other = { email: 'x@example.com', role: 'viewer' }
  const refused = await ann.post(`${MEMBERS}/invite`, other, { from: MEMBERS })
  expect([refused.status, refused.invalid]).toEqual([422, ['email']])
  const add = { account: ANN, email: 'y@example.com', role: 'viewer' } as const
  await expect(memberCommands.addMember(app.administration, add)).rejects.toThrow('at most 100')
  const { owner } = await setUpOwner(app)
  const page = `/app/service/accounts/${idOf(app, ANN)}`
  const byOwner = await owner.post(
    `${page}/invite-member`,
    { email: 'y@example.com' },
    { from: page },
  )
  expect([byOwner.status, byOwner.text.includes('at most 100')]).toEqual([422, true])
})

test('of 130 invitations at once, an account gets as many as it can have members', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const accountId = idOf(app, ANN)
  const { administration } = app
  const common = operator(administration, accountId)
  const asked = { ...common, author: { ...common.author, by: { personId: accountId } } }
  const results = await Promise.allSettled(
    Array.from({ length: 130 }, (_, n) =>
      invite(asked, { email: `${n}@example.com`, role: 'viewer' }),
    ),
  )
  expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(31)
  const { oneTimeLinks } = administration.data
  expect(oneTimeLinks.listInvites(app.now(), accountId)).toHaveLength(99)
  expect((await ann.get(MEMBERS)).text).toContain('Pending invitations')
})

test('whoever comes after the hundredth member does not join, with or without a person', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  const paths = [await inviteTo(ann, BOB), await inviteTo(ann, 'eve@example.com')]
  app.administer(({ accounts }) => {
    const to = { accountId: idOf(app, ANN), role: 'admin', passwordHash: null } as const
    for (let n = 0; n < 99; n++) {
      accounts.createMember({ ...to, email: `${n}@example.com`, createdAt: app.now() })
    }
  })
  expect((await bob.post(paths[0] ?? '', {})).status).toBe(422)
  const eve = new Visitor(app, { from: '192.0.2.60' })
  expect((await eve.post(paths[1] ?? '', { password: PASSWORD })).status).toBe(422)
  const inviteHash = app.administration.hasher.hash('one-time-link', paths[1]?.slice(10) ?? '')
  const dan = { issuer: 'x', subject: 'x', email: 'eve@example.com', inviteHash, now: app.now() }
  expect(await app.administration.data.identities.signUp(dan)).toBe('full')
  const members = app.administer(({ accounts }) => accounts.listMembers(idOf(app, ANN)))
  expect([members.length, idOf(app, 'eve@example.com')]).toEqual([100, 0])
})

test('of three who join at once, each by another way, one gets the last place', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  const emails = [BOB, 'eve@example.com', 'dan@example.com']
  const paths: string[] = []
  for (const email of emails) paths.push(await inviteTo(ann, email))
  const [ofBob = '', ofEve = '', ofDan = ''] = paths
  app.administer(({ accounts }) => {
    const to = { accountId: idOf(app, ANN), role: 'admin', passwordHash: null } as const
    for (let n = 0; n < 98; n++) {
      accounts.createMember({ ...to, email: `${n}@example.com`, createdAt: app.now() })
    }
  })
  const { hasher, data } = app.administration
  const inviteHash = hasher.hash('one-time-link', ofDan.slice('/app/join/'.length))
  const dan = { issuer: 'x', subject: 'x', email: 'dan@example.com', inviteHash, now: app.now() }
  const eve = new Visitor(app, { from: '192.0.2.60' })
  const [one, other, third] = await Promise.all([
    bob.post(ofBob, {}),
    eve.post(ofEve, { password: PASSWORD }),
    data.identities.signUp(dan),
  ])
  const joined = [one.status === 303, other.status === 303, typeof third === 'object']
  expect(joined.filter(Boolean)).toHaveLength(1)
  const members = app.administer(({ accounts }) => accounts.listMembers(idOf(app, ANN)))
  expect(members).toHaveLength(100)
})
