import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { addOneTimeLink, makeMember, resetTwoFactorByCommand } from '../support/members.ts'
import { codeOf, enableTwoFactor, keyIn, TWO_FACTOR } from '../support/totp.ts'

/** Two-factor sign-in: codes of an authenticator app, and recovery codes. */

const ANN = 'ann@example.com'
const CODE_PAGE = '/app/sign-in/code'
const ENV = { SESSION_IDLE_MINUTES: '10080', BASE_URL: 'http://hop.test' }

/** Somebody with two-factor sign-in, and a browser that has never been here. */
async function open() {
  const app = await testApp({ env: ENV })
  const ann = await makeMember(app, ANN)
  const { key, recoveryCodes } = await enableTwoFactor(app, ann)
  // The code that has turned it on is used up.
  app.advance(30 * SECOND)
  return { app, ann, key, recoveryCodes, there: new Visitor(app, { from: '198.51.100.7' }) }
}

const sendCode = (visitor: Visitor, code: string, csrf?: string): Promise<Seen> =>
  visitor.post(CODE_PAGE, { code, ...(csrf !== undefined && { csrf }) })

/** Six digits that are none of the codes that the service would accept now. */
function wrongCode(app: TestApp, key: string, n = 0): string {
  const right = [-1, 0, 1].map((steps) => codeOf(key, app.now(), steps))
  const wrong = [...Array(20).keys()].map((i) => String(100_000 + i))
  return wrong.filter((code) => !right.includes(code))[n] ?? ''
}

test('the set-up page has a QR code and a key for one secret, and a code of it turns two-factor sign-in on', async () => {
  await using app = await testApp({ env: ENV })
  const ann = await makeMember(app, ANN)
  const there = new Visitor(app)
  await there.signIn(ANN)
  const begun = await ann.post(`${TWO_FACTOR}/begin`, {}, { from: '/app/account/security' })
  const key = keyIn(begun)
  expect(key).toMatch(/^[A-Z2-7]{32}$/)
  const svg = /src="data:image\/svg\+xml;base64,([^"]+)"/.exec(begun.text)?.[1] ?? ''
  const { text: url } = await decodeQr(Buffer.from(svg, 'base64'), 'image/svg+xml')
  expect(url).toBe(
    'otpauth://totp/Hopcode%20(hop.test):ann%40example.com?issuer=Hopcode%20(hop.test)' +
      `&secret=${key}&algorithm=SHA1&digits=6&period=30`,
  )
  // Not on before a code has shown that the app has the secret.
  expect((await new Visitor(app).signIn(ANN)).location).toBe('/app/links')
  const { csrf } = begun
  const wrong = await ann.post(`${TWO_FACTOR}/confirm`, { code: wrongCode(app, key), csrf })
  expect([wrong.status, keyIn(wrong)]).toEqual([422, key])
  const code = codeOf(key, app.now())
  const done = await ann.post(`${TWO_FACTOR}/confirm`, { code, csrf })
  const codes = done.text.match(/\b[A-Z2-9]{5}-[A-Z2-9]{5}\b/g) ?? []
  expect([done.status, new Set(codes).size]).toEqual([200, 10])
  expect((await there.get('/app/account')).status).toBe(303)
  for (const path of ['/app/account/security', TWO_FACTOR]) {
    const { text } = await ann.get(path)
    for (const secret of [key, svg, ...codes]) expect(text).not.toContain(secret)
  }
  expect((await ann.get(TWO_FACTOR)).text).toContain('10 recovery codes of 10')
})

test('after the password the sign-in asks for a code, and before it there is no session', async () => {
  const { app, key, there } = await open()
  await using _ = app
  await there.get('/app/account')
  const sent = { email: ANN, password: PASSWORD, next: '/app/keys?done=x' }
  const first = await there.post('/app/sign-in', sent)
  expect(first.location).toBe(`${CODE_PAGE}?next=%2Fapp%2Fkeys%3Fdone%3Dx`)
  expect(first.setCookies.join()).toMatch(/hopcode-step=1\.\d+\.0\.[\w-]{43}; Path=\/; HttpOnly/)
  expect(there.cookies.has('hopcode')).toBe(false)
  expect((await there.get('/app/links')).location).toStartWith('/app/sign-in')
  const page = await there.get(first.location ?? '')
  expect(page.text).toContain('name="next" value="/app/keys?done=x"')
  expect(page.text).toContain('autocomplete="one-time-code"')
  const wrong = await sendCode(there, wrongCode(app, key))
  expect(wrong.status).toBe(401)
  expect(wrong.invalid).toEqual(['code'])
  expect(there.cookies.has('hopcode')).toBe(false)
  const fields = { code: codeOf(key, app.now()), next: '/app/keys' }
  expect((await there.post(CODE_PAGE, fields)).location).toBe('/app/keys')
  expect((await there.get('/app/account')).status).toBe(200)
  expect(there.cookies.has('hopcode-step')).toBe(false)
})

test('a code signs in once, also when it is sent twice at the same moment, and no older one after it', async () => {
  const { app, key } = await open()
  await using _ = app
  const code = codeOf(key, app.now(), 1)
  const browsers = [1, 2, 3].map((n) => new Visitor(app, { from: `198.51.100.${n}` }))
  for (const browser of browsers) await browser.signIn(ANN)
  const pages = await Promise.all(browsers.map((browser) => browser.get(CODE_PAGE)))
  await Promise.all(browsers.map((browser, i) => sendCode(browser, code, pages[i]?.csrf)))
  expect(browsers.filter(({ cookies }) => cookies.has('hopcode'))).toHaveLength(1)
  const late = new Visitor(app, { from: '198.51.100.9' })
  await late.signIn(ANN)
  expect((await sendCode(late, code)).status).toBe(401)
  expect((await sendCode(late, codeOf(key, app.now()))).status).toBe(401)
  app.advance(60 * SECOND)
  expect((await sendCode(late, codeOf(key, app.now()))).location).toBe('/app/links')
})

test('each recovery code signs in once, in any letter case, with or without its dash', async () => {
  const { app, recoveryCodes } = await open()
  await using _ = app
  const [first = '', second = ''] = recoveryCodes
  const enter = async (code: string, from: string) => {
    const browser = new Visitor(app, { from })
    await browser.signIn(ANN)
    return (await sendCode(browser, code)).status
  }
  expect(await enter(` ${first.toLowerCase()} `, '198.51.100.1')).toBe(303)
  expect(await enter(first, '198.51.100.2')).toBe(401)
  expect(await enter(second.replace('-', ''), '198.51.100.3')).toBe(303)
  expect(await enter('AAAAA-AAAAA', '198.51.100.4')).toBe(401)
})

test('codes cannot be tried out: five wrong ones, then one every five minutes, from everywhere together', async () => {
  const { app, key, there } = await open()
  await using _ = app
  await there.signIn(ANN)
  const { csrf } = await there.get(CODE_PAGE)
  const guesses = Array.from({ length: 12 }, (_, i) =>
    sendCode(there, wrongCode(app, key, i), csrf),
  )
  const statuses = (await Promise.all(guesses)).map(({ status }) => status).sort()
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429, 429, 429, 429, 429])
  const elsewhere = new Visitor(app, { from: '203.0.113.5' })
  await elsewhere.signIn(ANN)
  const refused = await sendCode(elsewhere, codeOf(key, app.now()))
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '300'])
  // The password entered again gives no new guesses.
  await there.signIn(ANN)
  expect((await sendCode(there, codeOf(key, app.now()))).status).toBe(429)
  app.advance(5 * MINUTE)
  await elsewhere.signIn(ANN)
  expect((await sendCode(elsewhere, codeOf(key, app.now()))).status).toBe(303)
})

test('somebody who guesses codes locks no browser out that has signed in before', async () => {
  const { app, ann, key, there } = await open()
  await using _ = app
  await ann.post('/app/sign-out', {}, { from: '/app/account' })
  await there.signIn(ANN)
  for (let i = 0; i < 6; i++) await sendCode(there, wrongCode(app, key, i))
  expect((await ann.signIn(ANN)).location).toBe(CODE_PAGE)
  expect((await sendCode(ann, codeOf(key, app.now()))).location).toBe('/app/links')
})

const stepCookies: { name: string; change: (cookie: string) => string }[] = [
  { name: 'of another account', change: (cookie) => cookie.replace(/^1\./, '2.') },
  {
    name: 'with a later end',
    change: (cookie) => cookie.replace(/\.(\d+)\./, (_, end) => `.${Number(end) + 1}.`),
  },
  {
    name: 'without its signature',
    change: (cookie) => cookie.replace(/[\w-]{43}$/, 'A'.repeat(43)),
  },
  { name: 'that is no such cookie', change: () => 'x' },
]
test.each(stepCookies)(
  'a cookie between password and code $name opens nothing',
  async ({ change }) => {
    const { app, key, there } = await open()
    await using _ = app
    const eve = await makeMember(app, 'eve@example.com')
    await enableTwoFactor(app, eve)
    await there.signIn(ANN)
    const { csrf } = await there.get(CODE_PAGE)
    there.cookies.set('hopcode-step', change(there.cookies.get('hopcode-step') ?? ''))
    expect((await there.get(CODE_PAGE)).location).toBe('/app/sign-in?done=late')
    const seen = await sendCode(there, codeOf(key, app.now()), csrf)
    expect(seen.location).toBe('/app/sign-in?done=late')
    expect(there.cookies.has('hopcode')).toBe(false)
  },
)

test('between password and code there are five minutes, and a new password ends them', async () => {
  const { app, ann, key, there } = await open()
  await using _ = app
  await there.signIn(ANN)
  const { csrf } = await there.get(CODE_PAGE)
  app.advance(5 * MINUTE)
  expect((await sendCode(there, codeOf(key, app.now()), csrf)).location).toContain('done=late')
  await there.signIn(ANN)
  const sent = { current: PASSWORD, password: 'eleven silent bees' }
  await ann.post('/app/account/security/password', sent, { from: '/app/account' })
  expect((await sendCode(there, codeOf(key, app.now()), csrf)).location).toContain('done=late')
  expect(there.cookies.has('hopcode')).toBe(false)
})

test('a reset link sets the password, and does not stand for the second factor', async () => {
  const { app, key, there } = await open()
  await using _ = app
  const path = addOneTimeLink(app, { purpose: 'reset', email: ANN })
  const seen = await there.post(path, { password: 'eleven silent bees' })
  expect(seen.location).toStartWith(CODE_PAGE)
  expect(there.cookies.has('hopcode')).toBe(false)
  expect((await sendCode(there, codeOf(key, app.now()))).location).toBe('/app/links')
})

test('turning it off asks for the password and a code, even right after the sign-in', async () => {
  const { app, ann, key, recoveryCodes } = await open()
  await using _ = app
  const off = (fields: Record<string, string>) =>
    ann.post(`${TWO_FACTOR}/disable`, fields, { from: TWO_FACTOR })
  const code = codeOf(key, app.now())
  const refused = [
    { fields: { current: '', code }, field: 'current' },
    { fields: { current: 'not this one', code }, field: 'current' },
    { fields: { current: PASSWORD, code: '' }, field: 'code' },
    { fields: { current: PASSWORD, code: wrongCode(app, key) }, field: 'code' },
  ]
  for (const { fields, field } of refused) {
    const { status, text } = await off(fields)
    expect([fields, status]).toEqual([fields, 422])
    expect(text).toMatch(new RegExp(`id="field-${field}"[^>]* aria-invalid="true"`))
  }
  expect((await new Visitor(app).signIn(ANN)).location).toBe(CODE_PAGE)
  const done = await off({ current: PASSWORD, code: recoveryCodes[3] ?? '' })
  expect(done.location).toBe(`${TWO_FACTOR}?done=off`)
  const there = new Visitor(app)
  expect((await there.signIn(ANN)).location).toBe('/app/links')
  // Nothing of it is left: turned on again, old recovery codes are no codes.
  await enableTwoFactor(app, ann)
  const again = new Visitor(app)
  await again.signIn(ANN)
  expect((await sendCode(again, recoveryCodes[0] ?? '')).status).toBe(401)
})

test('turning it on asks for the password ten minutes after it was entered', async () => {
  await using app = await testApp({ env: ENV })
  const ann = await makeMember(app, ANN)
  app.advance(10 * MINUTE)
  const asked = await ann.post(`${TWO_FACTOR}/begin`, {}, { from: TWO_FACTOR })
  expect([asked.status, keyIn(asked)]).toEqual([403, ''])
  const begun = await ann.post(`${TWO_FACTOR}/begin`, { current: PASSWORD }, { from: TWO_FACTOR })
  expect(keyIn(begun)).toHaveLength(32)
  const late = await ann.post(`${TWO_FACTOR}/begin`, {}, { from: TWO_FACTOR })
  expect(keyIn(late)).not.toBe(keyIn(begun))
  const old = codeOf(keyIn(begun), app.now())
  expect((await ann.post(`${TWO_FACTOR}/confirm`, { code: old, csrf: late.csrf })).status).toBe(422)
  app.advance(10 * MINUTE)
  const code = codeOf(keyIn(late), app.now())
  const confirmed = await ann.post(`${TWO_FACTOR}/confirm`, { code }, { from: TWO_FACTOR })
  expect([confirmed.status, confirmed.text]).toEqual([403, expect.stringContaining(code)])
})

test('the operator turns it off by a command, for somebody whose device is lost', async () => {
  const { app, there } = await open()
  await using _ = app
  expect(await resetTwoFactorByCommand(app, ANN)).toContain('is off')
  expect(await resetTwoFactorByCommand(app, ANN)).toContain('is not on')
  expect((await there.signIn(ANN)).location).toBe('/app/links')
})

test('the owner is offered it at the end of the set-up, and sees who has it', async () => {
  await using app = await testApp({ env: ENV })
  const owner = new Visitor(app)
  const welcome = await owner.post(new URL(app.setupLink).pathname, {
    email: OWNER,
    password: PASSWORD,
  })
  expect(welcome.text).toContain(`href="${TWO_FACTOR}"`)
  expect((await owner.get('/app/links')).status).toBe(200)
  const ann = await makeMember(app, ANN)
  const factorOf = async () =>
    /"Two-factor sign-in"[^>]*><div>(\w+)</.exec(
      (await owner.get('/app/service/accounts/2')).text,
    )?.[1]
  expect(await factorOf()).toBe('off')
  await enableTwoFactor(app, ann)
  expect(await factorOf()).toBe('on')
})

test('set-up over an account with two-factor sign-in still asks for its code', async () => {
  await using app = await testApp({ env: { ...ENV, SIGNUP: 'open' } })
  const ann = new Visitor(app)
  await ann.signUp(ANN)
  const { key } = await enableTwoFactor(app, ann)
  app.advance(30 * SECOND)
  const operator = new Visitor(app)
  const sent = { email: ANN, password: 'eleven silent bees', current: PASSWORD }
  const seen = await operator.post(new URL(app.setupLink).pathname, sent)
  expect(seen.location).toStartWith(CODE_PAGE)
  expect((await operator.get('/app/service')).status).toBe(303)
  const code = codeOf(key, app.now())
  const done = await operator.post(CODE_PAGE, { code, next: '/app/keys?done=owner' })
  expect(done.location).toBe('/app/keys?done=owner')
  expect((await operator.get('/app/service')).status).toBe(200)
})

test('no file, log line or address holds the secret, a code or a recovery code', async () => {
  const { app, ann, key, recoveryCodes, there } = await open()
  await using _ = app
  const { owner } = await setUpOwner(app)
  await owner.get('/app/service/accounts/1')
  await there.signIn(ANN)
  const code = codeOf(key, app.now())
  const entered = await sendCode(there, code)
  const later = new Visitor(app)
  await later.signIn(ANN)
  await sendCode(later, recoveryCodes[0] ?? '')
  await sendCode(ann, wrongCode(app, key))
  const bits = [...key].map((c) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'),
  )
  const bytes = Buffer.from(
    (bits.join('').match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)),
  )
  const secrets = [key, ...recoveryCodes, ...recoveryCodes.map((text) => text.replace('-', ''))]
  for (const secret of [...secrets, code]) expect(app.log.join('\n')).not.toContain(`"${secret}"`)
  expect(`${entered.location}${entered.setCookies}`).not.toContain(code)
  for (const name of readdirSync(app.dataDir).filter((file) => /^hopcode\.db|secret/.test(file))) {
    const file = readFileSync(join(app.dataDir, name))
    expect([name, file.includes(bytes), file.includes(bytes.toString('hex'))]).toEqual([
      name,
      false,
      false,
    ])
    for (const secret of secrets) expect(file.includes(secret)).toBe(false)
  }
  const events = app.log.map((line) => JSON.parse(line).event)
  for (const event of ['totp.enabled', 'recovery_code.used']) expect(events).toContain(event)
})
