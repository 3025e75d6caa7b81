import { expect, test } from 'bun:test'
import { type Answer, type TestApp, testApp } from '../support/app.ts'
import { messageOf } from '../support/refusals.ts'

/** The spec's chapter "POST /api/update". */

const update = (app: TestApp, json: unknown, key = 'enterprise') =>
  app.call('POST', '/api/update', { key, json })

/** Where the code leads, as a visitor, a look-up, the list and the image page say it. */
async function leadsOf(app: TestApp, code: string, key = 'enterprise'): Promise<unknown[]> {
  const followed = await app.call('GET', `/${code}`)
  const lookup = await app.call('GET', `/api/lookup/${code}`)
  const list = await app.call('GET', '/api/list?limit=200', { key })
  const image = await app.call('GET', `/api/qr-image/${code}`)
  const items = list.body.items as { code: string; url: string }[]
  const listed = items.filter((item) => item.code === code).map((item) => item.url)
  return [followed.headers.get('location'), lookup.body.url, ...listed, image.body.url]
}

// spec: Endpoints | POST /api/update
// spec: POST /api/update | code
// spec: POST /api/update | passcode
// spec: POST /api/update | url
// spec: POST /api/update | Response 200
// spec: Code (short link) | updated
test('POST /api/update changes the destination from the very next redirect on', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/old')
  await app.call('GET', `/${code}`)
  app.advance(1000)
  const json = { code, passcode, url: 'HTTPS://Example.com/new' }
  const answer = await update(app, json, 'free')
  const followed = await app.call('GET', `/${code}`)
  expect(followed.headers.get('location')).toBe('HTTPS://Example.com/new')
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    code,
    url: 'HTTPS://Example.com/new',
    updated: true,
    short_url: `http://hop.test/${code}`,
  })
  expect(await leadsOf(app, code, 'free')).toEqual(Array(4).fill('HTTPS://Example.com/new'))
  expect((await app.call('GET', `/api/lookup/${code}`)).body).toEqual({
    code,
    url: 'HTTPS://Example.com/new',
    created_at: '2026-03-01T12:00:00.000Z',
    hit_count: 3,
  })
})

test('repeating the same update gives the same answer and the same destination', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/old', 'enterprise')
  const json = { code, passcode, url: 'https://example.com/new' }
  const first = await update(app, json)
  const again = await Promise.all(Array.from({ length: 10 }, () => update(app, json)))
  for (const { status, text } of again)
    expect({ status, text }).toEqual({ status: 200, text: first.text })
  expect(await leadsOf(app, code)).toEqual(Array(4).fill('https://example.com/new'))
})

// design: 4.2 update may set a URL that another code of the account has
test('an update to a URL that another code of the account has succeeds', async () => {
  await using app = await testApp()
  const one = await app.shorten('https://example.com/1', 'enterprise')
  const two = await app.shorten('https://example.com/2', 'enterprise')
  const { status, body } = await update(app, { ...two, url: 'https://example.com/1' })
  expect({ status, code: body.code, url: body.url }).toEqual({
    status: 200,
    code: two.code,
    url: 'https://example.com/1',
  })
  for (const { code } of [one, two]) {
    expect(await leadsOf(app, code)).toEqual(Array(4).fill('https://example.com/1'))
  }
  const { body: again } = await app.call('POST', '/api/shorten', {
    key: 'enterprise',
    json: { url: 'https://example.com/1' },
  })
  expect(again).toMatchObject({ reused: true, passcode: null })
  expect([one.code, two.code]).toContain(again.code as string)
  const list = await app.call('GET', '/api/list', { key: 'enterprise' })
  expect(list.body.total).toBe(2)
})

test('of simultaneous updates one wins, and every reader sees the same one', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/old', 'enterprise')
  const urls = Array.from({ length: 20 }, (_, i) => `https://example.com/new/${i}`)
  const answers = await Promise.all(urls.map((url) => update(app, { code, passcode, url })))
  expect(answers.map(({ status, body }) => [status, body.url])).toEqual(
    urls.map((url) => [200, url]),
  )
  const [first, ...others] = await leadsOf(app, code)
  expect(urls).toContain(first as string)
  expect(others).toEqual(Array(3).fill(first))
})

test('of an update and a delete at once, the update comes before or is refused', async () => {
  await using app = await testApp()
  for (let round = 0; round < 20; round++) {
    const link = await app.shorten(`https://example.com/${round}`, 'enterprise')
    const change = () => update(app, { ...link, url: 'https://example.com/new' })
    const remove = () => app.call('POST', '/api/delete', { key: 'enterprise', json: link })
    const calls = round % 2 ? [change(), remove(), change()] : [remove(), change(), change()]
    const answers = await Promise.all(calls)
    const removed = answers[round % 2 ? 1 : 0] as Answer
    expect(removed.body).toEqual({ code: link.code, deleted: true })
    for (const { status } of answers) expect([200, 403]).toContain(status)
    expect((await app.call('GET', `/${link.code}`)).status).toBe(404)
    expect((await app.call('GET', `/api/lookup/${link.code}`)).status).toBe(404)
  }
  const list = await app.call('GET', '/api/list', { key: 'enterprise' })
  expect(list.body).toMatchObject({ total: 0, items: [] })
})

const LINK = { code: 'SPRING26', passcode: 'A'.repeat(24), url: 'https://example.com/new' }
// spec: Errors | 403 passcode wrong
// spec: Authentication | 5
// design: 4.8 the same 403, byte for byte
test('an unknown, a deleted and a foreign code and a wrong passcode are the same 403', async () => {
  await using app = await testApp()
  const mine = await app.shorten('https://example.com/mine', 'enterprise')
  const foreign = await app.shorten('https://example.com/foreign', 'enterprise-2')
  const gone = await app.shorten('https://example.com/gone', 'enterprise')
  await app.call('POST', '/api/delete', { key: 'enterprise', json: gone })
  const wrong = 'A'.repeat(24)
  const rows = [
    { code: 'NOBODYS1', passcode: wrong },
    { code: 'NOBODYS1', passcode: mine.passcode },
    { code: mine.code, passcode: wrong },
    { code: mine.code, passcode: foreign.passcode },
    { code: foreign.code, passcode: foreign.passcode },
    { code: foreign.code, passcode: mine.passcode },
    { code: foreign.code.toLowerCase(), passcode: wrong },
    gone,
    { code: 'no code!', passcode: wrong },
    { code: '', passcode: wrong },
  ]
  for (const row of rows) {
    for (const url of ['https://example.com/new', 'http://hop.test/blocked']) {
      const answer = await update(app, { ...row, url })
      const error = `Invalid passcode for code ${row.code.toUpperCase()}`
      expect({ row, status: answer.status, text: answer.text }).toEqual({
        row,
        status: 403,
        text: JSON.stringify({ error }),
      })
      expect([...answer.headers.keys()].sort()).toEqual(
        [...(await update(app, { ...LINK, passcode: wrong })).headers.keys()].sort(),
      )
    }
  }
  expect(await leadsOf(app, mine.code)).toEqual(Array(4).fill('https://example.com/mine'))
  const [location] = await leadsOf(app, foreign.code, 'enterprise-2')
  expect(location).toBe('https://example.com/foreign')
})

// spec: Code rules | 1
// design: 4.15 passcodes: exact match
test('a passcode must match exactly', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/old', 'enterprise')
  const near = [
    passcode.toLowerCase(),
    ` ${passcode}`,
    `${passcode} `,
    `${passcode}\n`,
    `${passcode}\0`,
    app.key('enterprise'),
    passcode.slice(0, 23),
    passcode.slice(1),
    `${passcode}A`,
    `A${passcode}`,
    passcode.repeat(2),
    '',
    '*',
    '%',
    '_'.repeat(24),
    `${passcode.slice(0, 23)}${passcode.at(-1) === 'A' ? 'B' : 'A'}`,
    [...passcode].map((char) => String.fromCharCode(char.charCodeAt(0) + 0xfee0)).join(''),
  ]
  for (const text of near) {
    const { status, body } = await update(app, { ...LINK, code, passcode: text })
    expect({ text, status, body }).toEqual({
      text,
      status: 403,
      body: { error: `Invalid passcode for code ${code}` },
    })
  }
  expect(await leadsOf(app, code)).toEqual(Array(4).fill('https://example.com/old'))
  expect((await update(app, { code, passcode, url: LINK.url })).status).toBe(200)
})

// spec: Errors | 422 destination host on
test('POST /api/update to a blocked host is 422, and the code leads where it led', async () => {
  await using app = await testApp()
  const link = await app.shorten('https://example.com/old', 'enterprise')
  const reserved = await app.reserve('SPRING26', 'enterprise')
  for (const { code, passcode } of [link, reserved]) {
    const { status, body } = await update(app, { code, passcode, url: 'https://hop.test/X' })
    expect({ status, body }).toEqual({
      status: 422,
      body: { error: messageOf('url_blocked') },
    })
  }
  expect(await leadsOf(app, link.code)).toEqual(Array(4).fill('https://example.com/old'))
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
})
