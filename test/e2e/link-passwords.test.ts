import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { START, testApp } from '../support/app.ts'
import { IPHONE, LINUX, patch, ua } from '../support/destination-rules.ts'
import {
  BROWSER,
  basic,
  cookieOf,
  hitsOf,
  LOCKED,
  SECRET_URL,
  send,
  setPassword,
  WORD,
  withPassword,
} from '../support/link-passwords.ts'
import { invalid, messageOf } from '../support/refusals.ts'

/** Links that ask for a password first. */

const open = { ANONYMOUS_REDIRECTS_PER_MINUTE: '0', ANONYMOUS_READS_PER_MINUTE: '0' }

test('a browser gets a form in its language, which says nothing of the destination', async () => {
  await using app = await testApp()
  await withPassword(app)
  const form = await app.call('GET', `/${LOCKED}?a=b`, {
    headers: { ...BROWSER, 'accept-language': 'de' },
  })
  expect(form.status).toBe(200)
  expect(form.headers.get('content-type')).toBe('text/html;charset=utf-8')
  expect(form.headers.get('cache-control')).toBe('no-store')
  expect(form.headers.get('referrer-policy')).toBe('no-referrer')
  expect(form.headers.get('x-robots-tag')).toBe('noindex')
  expect(form.text).toContain('<html lang="de">')
  expect(form.text).toMatch(/<form method="post">.*<input [^>]*name="password"/s)
  expect(JSON.stringify([...form.headers]) + form.text).not.toContain('d.example')
  expect(form.headers.get('www-authenticate')).toBeNull()
  expect(await hitsOf(app)).toBe(0)
})

test('a program gets 401 with a challenge; the script of a page gets none', async () => {
  await using app = await testApp()
  await withPassword(app)
  const asked = await app.call('GET', `/${LOCKED}`)
  expect(asked).toMatchObject({
    status: 401,
    body: { error: `Password required for code ${LOCKED}` },
  })
  expect(asked.headers.get('www-authenticate')).toBe(`Basic realm="${LOCKED}", charset="UTF-8"`)
  const script = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
  const fetched = await app.call('GET', `/${LOCKED}`, { headers: script })
  expect(fetched.status).toBe(401)
  expect(fetched.headers.get('www-authenticate')).toBeNull()
  // A password in the query would be in logs and referrers.
  expect((await app.call('GET', `/${LOCKED}?password=open+sesame`)).status).toBe(401)
  expect((await app.call('HEAD', `/${LOCKED}`)).status).toBe(401)
})

test('the password leads there once by the form, and then by the cookie', async () => {
  await using app = await testApp()
  await withPassword(app)
  const sent = await send(app, WORD, undefined, { headers: BROWSER })
  expect(sent.status).toBe(303)
  expect(sent.headers.get('location')).toBe(SECRET_URL)
  expect(sent.headers.get('referrer-policy')).toBe('no-referrer')
  expect(sent.headers.get('set-cookie')).toMatch(
    /^hopcode-unlock-[0-9a-f]{8}=\d+\.[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/,
  )
  expect(await hitsOf(app)).toBe(1)
  const again = await app.call('GET', `/${LOCKED}`, { headers: { ...BROWSER, ...cookieOf(sent) } })
  expect(again.status).toBe(302)
  expect(again.headers.get('location')).toBe(SECRET_URL)
  expect(again.headers.get('x-service-code')).toBe(LOCKED)
  expect(await hitsOf(app)).toBe(2)
})

test('a wrong password is 403: the form again, or JSON, and no hit', async () => {
  await using app = await testApp()
  await withPassword(app)
  const page = await send(app, 'wrong one', undefined, { headers: BROWSER })
  expect(page.status).toBe(403)
  expect(page.text).toContain('<form method="post">')
  const json = await send(app, 'wrong one')
  expect(json).toMatchObject({ status: 403, body: { error: `Wrong password for code ${LOCKED}` } })
  expect((await app.call('GET', `/${LOCKED}`, { headers: basic('wrong one') })).status).toBe(403)
  for (const { headers } of [page, json]) {
    expect(headers.get('set-cookie')).toBeNull()
    expect(headers.get('location')).toBeNull()
  }
  expect(await hitsOf(app)).toBe(0)
})

test('Basic authentication with any user name is a redirect', async () => {
  await using app = await testApp()
  await withPassword(app)
  for (const user of ['', 'anybody']) {
    const got = await app.call('GET', `/${LOCKED}`, { headers: basic(WORD, user) })
    expect([got.status, got.headers.get('location')]).toEqual([302, SECRET_URL])
    expect(got.headers.get('set-cookie')).toBeNull()
  }
  expect(await hitsOf(app)).toBe(2)
  const malformed = { authorization: 'Basic %%%' }
  expect((await app.call('GET', `/${LOCKED}`, { headers: malformed })).status).toBe(401)
})

test('the credentials that a browser sends for a proxy are no attempt: it gets the form', async () => {
  await using app = await testApp()
  await withPassword(app)
  for (const signs of [
    BROWSER,
    { accept: 'text/html', 'sec-fetch-mode': 'navigate' },
    { accept: 'text/html', 'sec-fetch-site': 'none' },
  ]) {
    for (let time = 0; time < 4; time++) {
      const headers = { ...signs, ...basic('of the proxy', 'operator') }
      expect((await app.call('GET', `/${LOCKED}`, { headers })).status).toBe(200)
    }
  }
  const proxied = { ...BROWSER, ...basic('of the proxy', 'operator') }
  expect((await send(app, WORD, undefined, { headers: proxied })).status).toBe(303)
  // The fetch of Node.js.
  const program = { 'sec-fetch-mode': 'cors', ...basic(WORD) }
  expect((await app.call('GET', `/${LOCKED}`, { headers: program })).status).toBe(302)
  expect((await app.call('GET', `/${LOCKED}`, { headers: basic('wrong') })).status).toBe(403)
})

test('only its account sees the destination, and nobody the password', async () => {
  await using app = await testApp()
  await withPassword(app)
  for (const path of [`/api/lookup/${LOCKED}`, `/api/qr-image/${LOCKED}`]) {
    expect(await app.call('GET', path)).toMatchObject({ status: 200, body: { url: null } })
  }
  const own = await app.call('GET', `/api/links/${LOCKED}`, { key: 'free' })
  expect(own).toMatchObject({ status: 200, body: { url: SECRET_URL, protected: true } })
  expect(own.body).not.toHaveProperty('password')
  const list = await app.call('GET', '/api/links', { key: 'free' })
  expect(list.text).not.toMatch(/argon2|open sesame/)
  expect((await app.call('GET', `/api/links/${LOCKED}`, { key: 'pro' })).status).toBe(404)
  await send(app, 'wrong one')
  await send(app, WORD)
  const told = app.log.join('\n') + (await app.call('GET', '/-/metrics')).text
  expect(told).not.toMatch(/d\.example|sesame|wrong one|argon2/)
})

test('a cookie is that of one link, of one password and of 12 hours', async () => {
  await using app = await testApp({ env: { ...open, REDIRECT_THREADS: '2' } })
  await withPassword(app)
  await withPassword(app, 'OTHER026', 'https://d.example/other')
  const cookie = cookieOf(await send(app, WORD))
  const statusWith = async (headers: { cookie: string }, code = LOCKED) =>
    (await app.call('GET', `/${code}`, { headers })).status
  const [name = '', value = ''] = cookie.cookie.split('=')
  const [expiry = '', mac] = value.split('.')
  const other = cookieOf(await send(app, WORD, '/OTHER026')).cookie.split('=')[0]
  expect(await statusWith({ cookie: `${other}=${value}` }, 'OTHER026')).toBe(401)
  expect(await statusWith(cookie, 'OTHER026')).toBe(401)
  for (const forged of [
    `${Number(expiry) + 60}.${mac}`,
    `${expiry}.`,
    `${expiry}.${mac}A`,
    expiry,
  ]) {
    expect(await statusWith({ cookie: `${name}=${forged}` })).toBe(401)
  }
  expect(await statusWith(cookie)).toBe(302)
  app.advance(12 * HOUR - 2000)
  expect(await statusWith(cookie)).toBe(302)
  app.advance(2000)
  expect(await statusWith(cookie)).toBe(401)
  const next = cookieOf(await send(app, WORD))
  // The same password, set again, is a change too.
  await setPassword(app, WORD)
  expect(await statusWith(next)).toBe(401)
  await setPassword(app, null)
  for (let i = 0; i < 20; i++) expect(await statusWith({ cookie: '' })).toBe(302)
})

test('over https, the cookie has the prefix __Host- and is Secure', async () => {
  await using app = await testApp({ env: { BASE_URL: 'https://hop.test' } })
  await withPassword(app)
  const set = (await send(app, WORD)).headers.get('set-cookie') ?? ''
  expect(set).toMatch(/^__Host-hopcode-unlock-[0-9a-f]{8}=.*; Secure$/)
  const { cookie } = cookieOf({ headers: new Headers({ 'set-cookie': set }) })
  expect((await app.call('GET', `/${LOCKED}`, { headers: { cookie } })).status).toBe(302)
})

test('POST is refused as before, except where a link has a password', async () => {
  await using app = await testApp({ env: open })
  await app.claim('PLAIN026')
  for (const path of ['/PLAIN026', '/UNKNOWN1', '/no/such/path']) {
    const before = await app.call('PUT', path)
    const refused = await send(app, WORD, path)
    expect(refused.status).toBe(path === '/no/such/path' ? 404 : 405)
    expect(refused.headers.get('allow')).toBe(before.headers.get('allow'))
  }
  await withPassword(app)
  expect((await app.call('POST', `/${LOCKED}`, { json: { password: WORD } })).status).toBe(415)
  expect((await send(app, 'x'.repeat(3000))).status).toBe(413)
  expect((await app.call('PUT', `/${LOCKED}`)).status).toBe(405)
  expect(await hitsOf(app)).toBe(0)
})

test('an alias of the link has the form too, and the cookie is that of all paths', async () => {
  await using app = await testApp({ env: { ...open, IMPORT_ALIASES: 'all' } })
  await withPassword(app)
  expect((await patch(app, { aliases: ['menu', 'summer/menu'] }, LOCKED)).status).toBe(200)
  for (const path of ['/menu', '/summer/menu']) {
    const form = await app.call('GET', path, { headers: BROWSER })
    expect([form.status, form.text.includes('d.example')]).toEqual([200, false])
    expect((await app.call('GET', path, { headers: basic(WORD) })).status).toBe(302)
    const sent = await send(app, WORD, path)
    expect([sent.status, sent.headers.get('location')]).toEqual([303, SECRET_URL])
    for (const other of ['/menu', '/summer/menu', `/${LOCKED}`]) {
      expect((await app.call('GET', other, { headers: cookieOf(sent) })).status).toBe(302)
    }
  }
})

test('the form keeps the query, which forward_query adds, and a rule decides by the visitor', async () => {
  await using app = await testApp()
  await withPassword(app)
  const destinations = [{ when: { os: ['ios'] }, url: 'https://ios.example/app' }]
  await patch(app, { forward_query: true, destinations }, LOCKED)
  const placeOf = async (agent: string) => {
    const path = `/${LOCKED}?a=b`
    const sent = await send(app, WORD, path, { headers: { ...BROWSER, ...ua(agent) } })
    return [sent.status, sent.headers.get('location')]
  }
  expect(await placeOf(IPHONE)).toEqual([303, 'https://ios.example/app?a=b'])
  expect(await placeOf(LINUX)).toEqual([303, `${SECRET_URL}?a=b`])
})

test('a link that is expired or paused answers as without a password, also to POST', async () => {
  await using app = await testApp()
  await withPassword(app)
  const statuses = async () => [
    (await app.call('GET', `/${LOCKED}`, { headers: BROWSER })).status,
    (await send(app, WORD)).status,
    (await app.call('GET', `/${LOCKED}`, { headers: basic(WORD) })).status,
  ]
  await patch(app, { expires_at: new Date(START).toISOString() }, LOCKED)
  expect(await statuses()).toEqual([410, 410, 410])
  await patch(app, { paused: true }, LOCKED)
  expect(await statuses()).toEqual([404, 404, 404])
})

test('wrong passwords, previews and prefetches use up no hit of max_hits', async () => {
  await using app = await testApp()
  await withPassword(app)
  await patch(app, { max_hits: 1 }, LOCKED)
  for (let i = 0; i < 3; i++) expect((await send(app, `wrong ${i}`)).status).toBe(403)
  const preview = await app.call('GET', `/${LOCKED}`, { headers: ua('WhatsApp/2.23') })
  expect([preview.status, preview.text.includes('<form')]).toEqual([200, true])
  const prefetch = { ...BROWSER, 'sec-purpose': 'prefetch' }
  expect((await app.call('GET', `/${LOCKED}`, { headers: prefetch })).status).toBe(200)
  expect((await send(app, WORD)).status).toBe(303)
  expect((await send(app, WORD)).status).toBe(410)
})

test('composed and decomposed letters are the same password', async () => {
  await using app = await testApp()
  await app.claim(LOCKED, SECRET_URL)
  await setPassword(app, 'Öffne dich'.normalize('NFD'))
  for (const form of ['NFC', 'NFD']) {
    const word = 'Öffne dich'.normalize(form)
    expect((await send(app, word)).status).toBe(303)
    expect((await app.call('GET', `/${LOCKED}`, { headers: basic(word) })).status).toBe(302)
  }
})

test('a password of Basic authentication may be in UTF-8 or in Latin-1', async () => {
  await using app = await testApp()
  await app.claim(LOCKED, SECRET_URL)
  for (const word of ['Öffne dich', 'Straße', '\u00ff\u00fe\u00fd!!!']) {
    await setPassword(app, word)
    const latin1 = Buffer.from(`ü:${word}`, 'latin1').toString('base64')
    for (const headers of [basic(word), { authorization: `Basic ${latin1}` }]) {
      const got = await app.call('GET', `/${LOCKED}`, { headers })
      expect([word, got.status, got.headers.get('location')]).toEqual([word, 302, SECRET_URL])
    }
  }
})

test.each([
  ['12345', 400],
  ['123456', 200],
  ['      ', 200],
  ['🔑'.repeat(5), 400],
  ['🔑'.repeat(6), 200],
  ['🔑'.repeat(128), 200],
  ['x'.repeat(129), 400],
  ['a\u0308'.repeat(128), 200],
  [7, 400],
  ['', 400],
])('the password %j is answered with %i', async (password, status) => {
  await using app = await testApp()
  await app.claim(LOCKED, SECRET_URL)
  const error = invalid('password')
  for (const [path, code, json] of [
    ['/api/shorten', 201, { url: 'https://d.example/new', code: 'SHORTEN', password }],
    ['/api/reserve', 201, { code: 'RESERVE', password }],
  ] as const) {
    const made = await app.call('POST', path, { key: 'free', json })
    expect(made.status).toBe(status === 400 ? 400 : code)
    if (status === 400) expect(made.body.error).toEqual(error)
  }
  const changed = await patch(app, { password }, LOCKED)
  expect(changed.status).toBe(status)
  if (status === 400) expect(changed.body.error).toEqual(error)
})

test('a link that is created with a password has one from the first request on', async () => {
  await using app = await testApp()
  const json = { url: SECRET_URL, code: LOCKED, password: WORD }
  expect((await app.call('POST', '/api/shorten', { key: 'free', json })).status).toBe(201)
  expect((await app.call('GET', `/${LOCKED}`)).status).toBe(401)
  expect((await send(app, WORD)).status).toBe(303)
})

test('form and password work during maintenance', async () => {
  await using app = await testApp()
  await withPassword(app)
  app.maintenance(START + HOUR)
  expect((await app.call('GET', `/${LOCKED}`, { headers: BROWSER })).status).toBe(200)
  expect((await send(app, WORD)).status).toBe(303)
})

test('the sixth wrong password of an address is refused, and the right one too until then', async () => {
  await using app = await testApp()
  await withPassword(app)
  const cookie = cookieOf(await send(app, WORD))
  for (let i = 0; i < 5; i++) expect((await send(app, `wrong ${i}`)).status).toBe(403)
  const seconds = MINUTE / 1000
  const sixth = await send(app, 'wrong 6')
  const error = messageOf('too_many_attempts', String(seconds))
  expect(sixth).toMatchObject({ status: 429, body: { error } })
  expect(sixth.headers.get('retry-after')).toBe(String(seconds))
  const page = await send(app, WORD, undefined, { headers: BROWSER })
  expect([page.status, page.headers.get('retry-after')]).toEqual([429, String(seconds)])
  expect(page.text).toContain(`${seconds} seconds`)
  expect((await app.call('GET', `/${LOCKED}`, { headers: basic(WORD) })).status).toBe(429)
  // Who is in stays in.
  expect((await app.call('GET', `/${LOCKED}`, { headers: cookie })).status).toBe(302)
  app.advance(MINUTE)
  expect((await send(app, WORD)).status).toBe(303)
})
