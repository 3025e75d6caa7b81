import { expect, test } from 'bun:test'
import { memberCommands } from '../../src/cli/members.ts'
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
  const path = await invite(ann, 'eve@example.com')
  expect((await eve.get(path)).text).toContain('Ann’s Bakery')
  // Two accounts may have one name.
  const forBob = await makeMember(app, 'pro@example.com')
  expect((await eve.get(path)).text).toContain(ANN)
  expect((await forBob.get(await invite(ann, 'pro@example.com'))).text).toContain(ANN)
})

/** Names that could pass for another account. */
const BAD_NAMES = [
  '',
  '  ',
  '17',
  '1 7',
  BOB,
  'bob\uff20example.com',
  'bob\ufe6bexample.com',
  'bob@\u034fexample.com',
  '\uff11\uff17',
  '\u0661\u0667',
  '\u096d',
  '\u2460\u2466',
  '1\u034f7',
  '1\u20e37',
  '\u3164',
  'x'.repeat(61),
  'a\u202eb',
]

test('no account has a name that looks like an address or a number', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const rename = (name: string) => ann.post('/app/account/name', { name }, { from: '/app/account' })
  for (const name of BAD_NAMES) {
    const seen = await rename(name)
    expect([name, seen.status, seen.invalid]).toEqual([name, 422, ['name']])
    const named = { account: ANN, name }
    await expect(memberCommands.renameAccount(app.administration, named)).rejects.toThrow(
      'The name',
    )
  }
  // The name that it has already can be sent again, though it is an address.
  expect((await rename(ANN)).status).toBe(303)
  for (const name of ['Team 17', 'हिन्दी', '日本', 'Ann’s Bakery']) {
    expect([name, (await rename(name)).status]).toEqual([name, 303])
  }
  expect((await ann.get('/app/account')).text).toContain('value="Ann’s Bakery"')
})
