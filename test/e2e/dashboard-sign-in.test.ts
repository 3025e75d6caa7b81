import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import {
  addOneTimeLink,
  lastUseOfKey,
  makeMember,
  markDeleted,
  resetPasswordByCommand,
  settled,
} from '../support/members.ts'

/** Getting into the dashboard: set-up, invitations, registration, passwords and sessions. */

const setupPath = (app: TestApp) => new URL(app.setupLink).pathname

test('the first start has a link that makes the owner’s account and shows its API key', async () => {
  await using app = await testApp()
  expect(app.setupLink).toMatch(/^http:\/\/hop\.test\/app\/setup\/[\w-]{43}$/)
  const { owner, key } = await setUpOwner(app)
  expect(key).toMatch(/^hop_/)
  expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 200 })
  const { status, text } = await owner.get('/app/account')
  expect({ status, plan: /Enterprise/.test(text), owner: text.includes(OWNER) }).toEqual({
    status: 200,
    plan: true,
    owner: true,
  })
  expect(text).toContain('/app/service')
  expect(text).not.toContain(key)
})

test('the set-up link works once, and none is made once there is an owner', async () => {
  await using app = await testApp()
  const path = setupPath(app)
  await setUpOwner(app)
  const other = new Visitor(app)
  expect((await other.get(path)).status).toBe(404)
  await other.get('/app/sign-in')
  const sent = { email: 'eve@example.com', password: PASSWORD }
  const { status, text } = await other.post(path, sent, { from: '/app/sign-in' })
  expect({ status, key: text.includes('hop_') }).toEqual({ status: 404, key: false })
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir })
  expect(again.setupLink).toBe('')
})

test('a start without an owner ends the set-up link of the start before', async () => {
  await using app = await testApp()
  const path = setupPath(app)
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir })
  expect((await new Visitor(again).get(path)).status).toBe(404)
  expect((await new Visitor(again).get(setupPath(again))).status).toBe(200)
})

test('looking at a one-time link does not use it up, and 24 hours later it is over', async () => {
  await using app = await testApp()
  const anonymous = new Visitor(app)
  app.advance(24 * HOUR - 1)
  expect((await anonymous.get(setupPath(app))).status).toBe(200)
  expect((await anonymous.get(setupPath(app))).status).toBe(200)
  app.advance(1)
  expect((await anonymous.get(setupPath(app))).status).toBe(404)
})

test('the set-up makes an account of the command line the owner, asks for no password that it has not, and ends its keys', async () => {
  await using app = await testApp()
  const key = app.key('pro')
  const owner = new Visitor(app)
  const sent = { email: 'PRO@example.com', password: PASSWORD }
  const seen = await owner.post(setupPath(app), sent)
  expect({ status: seen.status, location: seen.location }).toEqual({
    status: 303,
    location: '/app/keys?done=owner',
  })
  expect((await owner.get('/app/account')).text).toContain('/app/service')
  expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 401 })
})

test('two who take up one invitation at the same moment make one account', async () => {
  await using app = await testApp()
  const path = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  const seen = await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      new Visitor(app).post(path, { email: `${name}@example.com`, password: PASSWORD }),
    ),
  )
  expect(seen.map(({ status }) => status).sort()).toEqual([200, 404, 404])
})

test('SIGNUP opens the registration, which begins on the Free plan', async () => {
  const sent = { email: 'ann@example.com', password: PASSWORD }
  await using open = await testApp({ env: { SIGNUP: 'open' } })
  const ann = new Visitor(open)
  const signedUp = await ann.post('/app/sign-up', sent)
  expect([signedUp.status, signedUp.location]).toEqual([303, '/app/sign-in?done=signed-up'])
  expect((await ann.signIn(sent.email)).status).toBe(303)
  expect((await ann.get('/app/account')).text).toContain('Free')
  expect((await ann.get('/app/keys')).text).toContain('No API key')
})

test('sign-up answers alike whether or not the address has an account, and changes none', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const email = 'ann@example.com'
  const answers = await Promise.all(
    [PASSWORD, 'eleven silent bees'].map(async (password, i) => {
      await Bun.sleep(i * 50)
      const { status, location, text, headers } = await new Visitor(app).post('/app/sign-up', {
        email,
        password,
      })
      return { status, location, text, names: [...headers.keys()] }
    }),
  )
  expect(answers[1]).toEqual(answers[0] as (typeof answers)[0])
  const statuses = await Promise.all(
    [PASSWORD, 'eleven silent bees'].map(async (password) => {
      return (await new Visitor(app).signIn(email, password)).status
    }),
  )
  expect(statuses.toSorted()).toEqual([303, 401])
})

/** New accounts, each from an address of its own. */
async function signUpFrom(app: TestApp, addresses: readonly string[]): Promise<number[]> {
  const statuses: number[] = []
  for (const from of addresses) {
    const email = `user${statuses.length}@example.com`
    const { status } = await new Visitor(app, { from }).post('/app/sign-up', {
      email,
      password: PASSWORD,
    })
    statuses.push(status)
  }
  return statuses
}

test('one network creates 20 accounts at once, however many addresses it has', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open', TRUSTED_PROXIES: '127.0.0.1' } })
  const networks = [(i: number) => `2001:db8:1:${i.toString(16)}::1`, (i: number) => `192.0.2.${i}`]
  for (const clientIp of networks) {
    const addresses = Array.from({ length: 22 }, (_, i) => clientIp(i + 1))
    const statuses = await signUpFrom(app, addresses)
    expect(statuses.filter((status) => status === 303)).toHaveLength(20)
    expect(statuses.slice(20)).toEqual([429, 429])
  }
  app.advance(10 * MINUTE)
  expect(await signUpFrom(app, ['192.0.2.99'])).toEqual([303])
})

test('the whole service creates as many accounts per day as the operator allows', async () => {
  const env = { SIGNUP: 'open', SIGNUPS_PER_DAY: '3', TRUSTED_PROXIES: '127.0.0.1' }
  await using app = await testApp({ env })
  const addresses = [1, 2, 3, 4].map((i) => `198.51.${i}.1`)
  expect(await signUpFrom(app, addresses)).toEqual([303, 303, 303, 429])
})

test('128 characters of any script are a password', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const password = `${'水'.repeat(127)}🦆`
  const path = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  const ann = new Visitor(app)
  const { text: page } = await ann.get(path)
  await ann.post(path, { email: 'ann@example.com', password })
  expect((await new Visitor(app).signIn('ann@example.com', password)).status).toBe(303)
  // A browser counts UTF-16 units, and would cut a longer password in silence.
  for (const text of [page, (await ann.get('/app/account/security')).text]) {
    expect(text).toMatch(/autocomplete="new-password"[^>]* minlength="8"/)
    expect(text).not.toContain('maxlength')
  }
})

test('an account without a password gets one by a reset link, which ends its sessions', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'ann@example.com')
  const path = addOneTimeLink(app, { purpose: 'reset', email: 'ann@example.com' })
  const elsewhere = new Visitor(app)
  const seen = await elsewhere.post(path, { password: 'eleven silent bees' })
  expect(seen.location).toBe('/app/links')
  expect((await member.get('/app/account')).location).toStartWith('/app/sign-in')
  expect((await elsewhere.get('/app/account')).status).toBe(200)
  expect((await new Visitor(app).signIn('ann@example.com')).status).toBe(401)
  expect((await new Visitor(app).signIn('ann@example.com', 'eleven silent bees')).status).toBe(303)
  expect((await new Visitor(app).get(path)).status).toBe(404)
})

test('changing the password asks for the old one and ends other sessions, not this one', async () => {
  await using app = await testApp()
  const here = await makeMember(app, 'ann@example.com')
  const there = new Visitor(app)
  await there.signIn('ann@example.com')
  const change = (current: string) =>
    here.post(
      '/app/account/security/password',
      { current, password: 'eleven silent bees' },
      { from: '/app/account' },
    )
  const wrong = await change('not this one')
  expect(wrong.status).toBe(422)
  expect(wrong.invalid).toEqual(['current'])
  // A reload of the refused form, by its address.
  const again = await here.get('/app/account/security/password')
  expect(again.location).toBe('/app/account/security')
  expect((await there.get('/app/account')).status).toBe(200)
  expect((await change(PASSWORD)).location).toBe('/app/account/security?done=password')
  expect((await here.get('/app/account')).status).toBe(200)
  expect((await there.get('/app/account')).status).toBe(303)
  expect((await new Visitor(app).signIn('ann@example.com')).status).toBe(401)
})

test('sessions are listed, and each can be ended from another', async () => {
  await using app = await testApp()
  const here = await makeMember(app, 'ann@example.com')
  const there = new Visitor(app, { from: '2001:db8:1:2::9', 'user-agent': 'Safari/1 iPhone' })
  await there.signIn('ann@example.com')
  const { text } = await here.get('/app/account/security')
  expect(text).toContain('Safari on iPhone')
  expect(text).toContain('2001:db8:1:2::/64')
  const session = /name="session" value="(\d+)"/.exec(text)?.[1] ?? ''
  await here.post('/app/account/sessions/end', { session }, { from: '/app/account' })
  expect((await there.get('/app/account')).status).toBe(303)
  expect((await here.get('/app/account')).status).toBe(200)
})

test('deleting the account takes its keys, its sessions and its links, and frees the codes', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'free@example.com')
  const key = app.key('free')
  const { code } = await app.claim('SPRING26')
  const bulk = { urls: [...Array(60).keys()].map((i) => `https://example.com/${i}`) }
  await app.call('POST', '/api/bulk-shorten', { key, json: bulk })
  await app.call('GET', `/${code}`)
  const path = '/app/account/delete'
  expect((await ann.get(path)).text).toContain('61 links')
  const wrong = await ann.post(path, { current: 'not this one' })
  expect(wrong.status).toBe(422)
  expect(await app.call('GET', `/${code}`)).toMatchObject({ status: 302 })
  expect((await ann.post(path, { current: PASSWORD })).location).toBe('/app/sign-in?done=deleted')
  expect(await app.call('GET', `/${code}`)).toMatchObject({ status: 404 })
  expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 401 })
  expect((await ann.get('/app/account')).status).toBe(303)
  expect((await new Visitor(app).signIn('free@example.com')).status).toBe(401)
  expect((await app.reserve(code, 'pro')).passcode).toHaveLength(24)
})

test('a deletion that a stop has interrupted goes on at the next start', async () => {
  await using app = await testApp()
  const key = app.key('free')
  const { code } = await app.claim('SPRING26')
  await app.stop()
  markDeleted(app, 'free@example.com')
  await using again = await testApp({ dataDir: app.dataDir })
  await eventually(
    'the code is gone',
    async () => (await again.call('GET', `/${code}`)).status === 404,
  )
  expect(await again.call('GET', '/api/list', { key })).toMatchObject({ status: 401 })
})

test('signing in opens the requested page, and never another site', async () => {
  await using app = await testApp()
  await makeMember(app, 'ann@example.com')
  const visitor = new Visitor(app)
  const { location } = await visitor.get('/app/account?done=password')
  expect(location).toBe('/app/sign-in?next=%2Fapp%2Faccount%3Fdone%3Dpassword')
  for (const next of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/app/../..//evil.example',
    '/APPLE123',
  ]) {
    const fresh = new Visitor(app)
    const sent = { email: 'ann@example.com', password: PASSWORD, next }
    expect((await fresh.post('/app/sign-in', sent)).location).toBe('/app/links')
  }
  const sent = { email: 'ann@example.com', password: PASSWORD, next: '/app/keys' }
  expect((await visitor.post('/app/sign-in', sent)).location).toBe('/app/keys')
})

test('a session that was seen is kept, to the minute', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  for (let i = 0; i < 4; i++) {
    app.advance(28 * MINUTE)
    expect((await ann.get('/app/account')).status).toBe(200)
    // The sighting is written behind the answer; a second page waits for no more than that.
    await settled(app)
  }
})

test('the command line gives a reset link that a running service honours', async () => {
  await using app = await testApp()
  app.key('free')
  expect((await new Visitor(app).signIn('free@example.com')).status).toBe(401)
  const { link, ends_at } = JSON.parse(await resetPasswordByCommand(app, 'free@example.com'))
  expect(ends_at).toBe('2026-03-02T12:00:00.000Z')
  const member = new Visitor(app)
  expect((await member.post(new URL(link).pathname, { password: PASSWORD })).status).toBe(303)
  expect((await new Visitor(app).signIn('free@example.com')).status).toBe(303)
})

test('when a key was last used is kept', async () => {
  await using app = await testApp()
  app.key('free')
  expect(lastUseOfKey(app, 'free@example.com')).toBeNull()
  app.advance(MINUTE)
  await app.call('GET', '/api/list', { key: 'free' })
  await eventually('the use is written', () => lastUseOfKey(app, 'free@example.com') === app.now())
})

test('a form of a page that was opened over http names the https address to open', async () => {
  await using app = await testApp({ env: { BASE_URL: 'https://hop.test' } })
  const page = await app.call('GET', '/app/sign-in')
  const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.text) ?? []
  // The browser has dropped the cookie.
  const answer = await app.call('POST', '/app/sign-in', {
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: app.url,
      host: new URL(app.url).host,
    },
    raw: new URLSearchParams({ csrf, email: OWNER, password: PASSWORD }).toString(),
  })
  expect(answer.status).toBe(403)
  expect(answer.text).toContain('https://hop.test/app/sign-in')
  expect(answer.text).not.toContain('no longer valid')
})
