import { expect, test } from 'bun:test'
import { nameOfHost } from '../../src/accounts/names.ts'
import { memberCommands } from '../../src/cli/members.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, inviteTo as invite, makeMember } from '../support/members.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const MEMBERS = '/app/account/members'

test('an admin renames the account, and its members see the name', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const bob = new Visitor(app)
  await bob.post(await invite(ann, BOB), { password: PASSWORD })
  const rename = (name: string) => ann.post('/app/account/name', { name }, { from: '/app/account' })
  expect((await rename('  Ann’s   Bakery ')).location).toBe('/app/account?done=saved')
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

const HOSTS = [
  ['go.acme.example', 'Acme'],
  ['acme.example', 'Acme'],
  ['links.go.acme.co.uk', 'Acme'],
  ['co.uk', 'Co'],
  ['com.example', 'Com'],
  ['müller.example', 'Müller'],
  ['printer.local', 'Printer'],
  ['4711.example', undefined],
  ['localhost', undefined],
  ['192.0.2.7', undefined],
  ['[2001:db8::1]', undefined],
  ['', undefined],
] as const
test.each(HOSTS)('an account of the host %p is called %p', (host, name) => {
  expect(nameOfHost(host)).toBe(name)
})

const FIRST_NAMES = [
  { base: 'https://go.acme.example', typed: 'Bäckerei', name: 'Bäckerei' },
  { base: 'https://go.acme.example', typed: '', name: 'Acme' },
  { base: 'http://localhost:3000', typed: '', name: 'Shop' },
  { base: 'http://localhost:3000', typed: 'maya@shop.example', name: 'maya@shop.example' },
] as const
test.each(FIRST_NAMES)(
  'set up at $base and named as $typed the account is called $name',
  async ({ base, typed, name }) => {
    await using app = await testApp({ env: { BASE_URL: base } })
    const owner = new Visitor(app)
    const path = new URL(app.setupLink).pathname
    expect((await owner.get(path)).text).toContain(
      base.includes('acme') ? 'name="account" autocomplete="organization"' : 'Empty: the domain',
    )
    const sent = { email: 'maya@shop.example', password: PASSWORD, account: typed }
    const headers = { origin: base, 'sec-fetch-site': 'same-origin' }
    expect((await owner.post(path, sent, { headers })).status).toBe(200)
    const named = app.administer(({ accounts }) => accounts.findById(1)?.name)
    expect(named).toBe(name)
  },
)

test('the page of an invitation is called after the account, and one that creates an account asks for its name', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  const eve = new Visitor(app)
  const titleOf = (text: string) => /<h1>([^<]*)/.exec(text)?.[1]
  // An account that nobody has named is not called after its person.
  const before = await eve.get(await invite(ann, 'eve@example.com'))
  expect([titleOf(before.text), before.text.includes('their account')]).toEqual([
    'Join an account',
    true,
  ])
  await ann.post('/app/account/name', { name: 'Bakery' }, { from: '/app/account' })
  const { text } = await eve.get(await invite(ann, 'eve@example.com'))
  expect(titleOf(text)).toBe('Join Bakery')
  expect(text).not.toContain('name="account"')
  const path = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  const sent = { email: 'eve@example.com', password: PASSWORD }
  const refused = await eve.post(path, { ...sent, account: BOB })
  expect([refused.status, refused.invalid]).toEqual([422, ['account']])
  expect((await eve.post(path, { ...sent, account: 'Eve’s' })).status).toBe(200)
  expect((await eve.get('/app/account')).text).toContain('value="Eve’s"')
})
