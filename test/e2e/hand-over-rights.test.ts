import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { testApp } from '../support/app.ts'
import {
  codesOf,
  idOf,
  moveCodes,
  open,
  PRO,
  patch,
  proAndEnterprise,
} from '../support/hand-over.ts'
import { problemsOf } from '../support/problems.ts'

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
