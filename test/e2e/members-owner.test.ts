import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { inviteTo, makeMember, setupLinkByCommand } from '../support/members.ts'

const FREE = 'free@example.com'
const MEMBERS = '/app/account/members'

const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

const leave = (app: TestApp, who: Visitor, email: string) =>
  who.post(
    `${MEMBERS}/${idOf(app, email)}/remove`,
    {},
    { from: `${MEMBERS}/${idOf(app, email)}/remove` },
  )

/** The statuses of what only the accounts of owners may do. */
async function rightsOf(app: TestApp, key = 'free'): Promise<number[]> {
  const destinations = [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }]
  const changes = [{ aliases: ['menu'] }, { domain: 'brand.example' }, { destinations }]
  const statuses = []
  for (const json of changes) {
    statuses.push((await app.call('PATCH', '/api/links/AAAAAA', { key, json })).status)
  }
  return statuses
}

const REFUSED = [403, 400, 403]
const ENV = { ALIASES: 'owners', DESTINATION_RULES: 'owners' }

test('an owner of the service who joins an account gives it no rights of an owner', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const member = await makeMember(app, FREE)
  await app.claim('AAAAAA')
  await addDomain(app.administration, operatorOf(app.administration), { host: 'brand.example' })
  app.advance(1)
  await owner.post(await inviteTo(member, OWNER, 'viewer'), {})
  expect((await member.get(MEMBERS)).text).toContain(OWNER)
  expect(await rightsOf(app)).toEqual(REFUSED)
  const own = { url: 'https://example.com/own', aliases: ['menu'], domain: 'brand.example' }
  expect((await app.call('POST', '/api/shorten', { key, json: own })).status).toBe(201)

  // The owner is the first member that is left, and then the only admin.
  const accomplice = await makeMember(app, 'acc@example.com')
  app.advance(1)
  await accomplice.post(await inviteTo(member, 'acc@example.com'), {})
  expect((await leave(app, member, FREE)).status).toBe(303)
  expect(await rightsOf(app)).toEqual(REFUSED)
  const { body } = await app.call('GET', '/api/domains', { key: 'free' })
  expect(JSON.stringify(body)).not.toContain('brand.example')
  await accomplice.post(`${MEMBERS}/${idOf(app, OWNER)}/role`, { role: 'admin' }, { from: MEMBERS })
  await leave(app, accomplice, 'acc@example.com')
  expect(await rightsOf(app)).toEqual(REFUSED)
})

test('a person who becomes an owner gives rights to the account created with them, and to no other', async () => {
  await using app = await testApp({ env: ENV })
  await setUpOwner(app)
  await addDomain(app.administration, operatorOf(app.administration), { host: 'brand.example' })
  const member = await makeMember(app, FREE)
  await app.claim('AAAAAA')
  const pro = await makeMember(app, 'pro@example.com')
  app.advance(1)
  await pro.post(await inviteTo(member, 'pro@example.com'), {})
  await leave(app, member, FREE)
  const setUp = new URL(await setupLinkByCommand(app)).pathname
  await pro.post(setUp, { email: 'pro@example.com', password: PASSWORD, current: PASSWORD })
  const isOwners = (email: string) =>
    app.administer(({ db }) =>
      db.query('SELECT is_owner AS n FROM accounts WHERE name = ?').get(email),
    )
  expect([isOwners(FREE), isOwners('pro@example.com')]).toEqual([{ n: 0 }, { n: 1 }])
  // Whoever takes over the account of an owner has its rights.
  const free = await makeMember(app, 'late@example.com')
  await pro.post('/app/account/open', { account: String(idOf(app, 'pro@example.com')) })
  await free.post(await inviteTo(pro, 'late@example.com'), {})
  await leave(app, pro, 'pro@example.com')
  expect(isOwners('pro@example.com')).toEqual({ n: 1 })
})

test('an owner creates a further account for themselves, which has no rights of an owner', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  await app.claim('SPRING26', 'https://example.com/', key)
  const path = '/app/service/accounts/new'
  const refused = await owner.post(path, { name: 'bob@example.com', plan: 'pro' })
  expect([refused.status, refused.invalid]).toEqual([422, ['name']])
  const created = await owner.post(path, { name: 'Side project', plan: 'pro' })
  expect(created.location).toBe('/app/links')
  const { text } = await owner.get('/app/links')
  expect([text.includes('Side project'), text.includes('SPRING26')]).toEqual([true, false])
  expect(text).toContain(`Open ${OWNER}`)
  await owner.post('/app/links', { url: 'https://example.com/side' })
  const [own, side] = app.administer(({ accounts, db }) => {
    const rows = accounts.listAccountsOf(accounts.findByEmail(OWNER)?.id ?? 0)
    const counts = 'SELECT account_id AS id, count(*) AS n FROM links GROUP BY 1 ORDER BY 1'
    expect(db.query(counts).all()).toEqual(rows.map(({ id }) => ({ id, n: 1 })))
    return rows.map(({ id }) => accounts.findById(id))
  })
  expect(side).toMatchObject({ name: 'Side project', plan: 'pro', isOwner: 0 })
  // The next person has an id of their own.
  await makeMember(app, 'ann@example.com')
  expect(idOf(app, 'ann@example.com')).toBeGreaterThan(side?.id ?? 0)
  await owner.post('/app/account/open', { account: String(own?.id) }, { from: '/app/links' })
  expect((await owner.get('/app/links')).text).toContain('SPRING26')
})
