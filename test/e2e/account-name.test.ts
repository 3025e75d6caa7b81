import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { inviteTo as invite, makeMember } from '../support/members.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const MEMBERS = '/app/account/members'

test('an admin renames the account, and its members see the name', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = new Visitor(app)
  await bob.post(await invite(ann, BOB), { password: PASSWORD })
  const rename = (name: string) => ann.post('/app/account/name', { name }, { from: '/app/account' })
  expect((await rename('  Ann’s   Bakery ')).location).toBe('/app/account?done=name')
  expect((await bob.get(MEMBERS)).text).toContain('Members of Ann’s Bakery')
  const eve = new Visitor(app, { from: '192.0.2.60' })
  expect((await eve.get(await invite(ann, 'eve@example.com'))).text).toContain('Ann’s Bakery')
  // None that could pass for another account.
  for (const name of ['', '  ', '17', BOB, 'x'.repeat(61), 'a\u202eb']) {
    const seen = await rename(name)
    expect([name, seen.status, seen.invalid]).toEqual([name, 422, ['name']])
  }
  expect((await ann.get('/app/account')).text).toContain('value="Ann’s Bakery"')
})
