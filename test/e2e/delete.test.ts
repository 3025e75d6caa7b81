import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'

/** The spec's chapter "POST /api/delete". */

const remove = (app: TestApp, json: unknown, key = 'enterprise') =>
  app.call('POST', '/api/delete', { key, json })

const READS = ['/', '/api/lookup/', '/api/qr/', '/qr/', '/api/qr-image/'].map(
  (start) => (code: string) => start + code,
)
const IMAGE = (code: string) => `/cdn/qr/${code}.png`

async function statusesOf(app: TestApp, code: string): Promise<number[]> {
  const statuses: number[] = []
  for (const path of [...READS, IMAGE]) statuses.push((await app.call('GET', path(code))).status)
  return statuses
}

// spec: POST /api/delete | code
// spec: POST /api/delete | The short URL stops working immediately
// spec: Endpoints | POST /api/delete
// spec: States and transitions | deleted
// spec: POST /api/delete | Response 200
// spec: Code (short link) | deleted
test('POST /api/delete makes each address of a code 404 from the very next request on', async () => {
  await using app = await testApp()
  const links = await Promise.all(
    [...READS, IMAGE].map((_, i) => app.shorten(`https://example.com/${i}`, 'enterprise')),
  )
  for (const [i, path] of [...READS, IMAGE].entries()) {
    const link = links[i] as { code: string; passcode: string }
    const { code, passcode } = link
    expect(await statusesOf(app, code)).toEqual([302, 200, 200, 302, 200, 200])
    const answer = await remove(app, { code, passcode })
    const next = await app.call('GET', path(code))
    expect({ path: path(code), status: next.status, body: next.body }).toEqual({
      path: path(code),
      status: 404,
      body: { error: `Code not found: ${code}` },
    })
    expect({ status: answer.status, body: answer.body }).toEqual({
      status: 200,
      body: { code, deleted: true },
    })
    expect(next.headers.get('location')).toBeNull()
    expect(next.headers.get('cache-control') ?? '').not.toContain('immutable')
    expect(await statusesOf(app, code)).toEqual(Array(6).fill(404))
  }
  const list = await app.call('GET', '/api/list', { key: 'enterprise' })
  expect(list.body).toMatchObject({ total: 0, count: 0, items: [] })
})

test('a delete ends one code alone', async () => {
  await using app = await testApp()
  const [one, two] = [
    await app.shorten('https://a.example/'),
    await app.shorten('https://b.example/'),
  ]
  await remove(app, one, 'free')
  const list = await app.call('GET', '/api/list', { key: 'free' })
  expect(list.body).toMatchObject({ total: 1, count: 1, items: [{ code: two.code }] })
  expect((await app.call('GET', `/${two.code}`)).status).toBe(302)
})

// spec: States and transitions | deleted POST /api/delete
test('deleting a deleted code is 403, and of 20 simultaneous deletes one succeeds', async () => {
  await using app = await testApp()
  const link = await app.shorten('https://example.com/', 'enterprise')
  const answers = await Promise.all(Array.from({ length: 20 }, () => remove(app, link)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(403)])
  const again = await remove(app, link)
  expect({ status: again.status, body: again.body }).toEqual({
    status: 403,
    body: { error: `Invalid passcode for code ${link.code}` },
  })
  const update = await app.call('POST', '/api/update', {
    key: 'enterprise',
    json: { ...link, url: 'https://example.com/' },
  })
  expect(update.status).toBe(403)
  expect((await app.call('GET', '/api/list', { key: 'enterprise' })).body.total).toBe(0)
})

// design: 4.17 a re-claimed code starts at 0
test('a deleted code is free for anyone, and nothing of its past opens it', async () => {
  await using app = await testApp()
  const past = await app.reserve('SPRING26', 'enterprise')
  const first = { ...past, url: 'https://example.com/past' }
  await app.call('POST', '/api/update', { key: 'enterprise', json: first })
  for (let i = 0; i < 5; i++) await app.call('GET', '/SPRING26')
  await remove(app, past)
  app.advance(1000)
  const claimed = await app.call('POST', '/api/reserve', { key: 'pro', json: { code: 'SPRING26' } })
  expect(claimed.status).toBe(201)
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  const lookup = await app.call('GET', '/api/lookup/SPRING26')
  expect(lookup.body).toEqual({
    code: 'SPRING26',
    url: null,
    created_at: '2026-03-01T12:00:01.000Z',
    hit_count: 0,
  })
  const passcode = claimed.body.passcode as string
  expect(passcode).not.toBe(past.passcode)
  const refused = [
    { key: 'enterprise', passcode: past.passcode },
    { key: 'enterprise', passcode },
    { key: 'pro', passcode: past.passcode },
  ]
  for (const { key, ...secret } of refused) {
    for (const path of ['/api/update', '/api/delete']) {
      const url = path === '/api/update' ? 'https://example.com/thief' : undefined
      const json = { code: 'SPRING26', ...secret, url }
      const { status, body } = await app.call('POST', path, { key, json })
      expect({ key, path, status, body }).toEqual({
        key,
        path,
        status: 403,
        body: { error: 'Invalid passcode for code SPRING26' },
      })
    }
  }
  const json = { code: 'SPRING26', passcode, url: 'https://example.com/present' }
  expect((await app.call('POST', '/api/update', { key: 'pro', json })).status).toBe(200)
  const followed = await app.call('GET', '/SPRING26')
  expect(followed.headers.get('location')).toBe('https://example.com/present')
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(1)
  expect(await statusesOf(app, 'SPRING26')).toEqual([302, 200, 200, 302, 200, 200])
  const old = await app.call('GET', '/api/list', { key: 'enterprise' })
  expect(old.body).toMatchObject({ total: 0, items: [] })
})

test('a code deleted and claimed over and over is always its last owner’s', async () => {
  await using app = await testApp()
  for (let round = 0; round < 20; round++) {
    const key = `enterprise-${round % 3}`
    const { passcode } = await app.reserve('RELAY1', key)
    const json = { code: 'RELAY1', passcode }
    const url = `https://example.com/${round}`
    await app.call('POST', '/api/update', { key, json: { ...json, url } })
    const followed = await app.call('GET', '/RELAY1')
    expect(followed.headers.get('location')).toBe(url)
    expect((await app.call('GET', '/api/lookup/RELAY1')).body.hit_count).toBe(1)
    expect((await remove(app, json, key)).status).toBe(200)
    expect((await app.call('GET', '/RELAY1')).status).toBe(404)
  }
})

test('of several claims during a delete, one at most gets the code', async () => {
  await using app = await testApp()
  for (let round = 0; round < 10; round++) {
    const code = `HANDOVER${round}`
    const link = await app.reserve(code, 'enterprise')
    const claims = Array.from({ length: 6 }, (_, i) =>
      app.call('POST', '/api/reserve', { key: `enterprise-${i}`, json: { code } }),
    )
    const [deleted, ...answers] = await Promise.all([remove(app, link), ...claims])
    expect(deleted?.status).toBe(200)
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses.filter((status) => status === 201).length).toBeLessThanOrEqual(1)
    expect(statuses.filter((status) => status !== 201 && status !== 409)).toEqual([])
    const claimed = statuses.includes(201)
    expect((await app.call('GET', `/api/lookup/${code}`)).status).toBe(claimed ? 200 : 404)
  }
})

// spec: POST /api/delete | passcode
// spec: Errors | 403 passcode wrong
// spec: Authentication | 5
// design: 4.8 the same 403, byte for byte
test('an unknown code, a wrong passcode and a foreign code are the same 403', async () => {
  await using app = await testApp()
  const mine = await app.shorten('https://example.com/mine', 'enterprise')
  const foreign = await app.shorten('https://example.com/foreign', 'enterprise-2')
  const rows = [
    { code: 'NOBODYS1', passcode: mine.passcode },
    { code: 'no code!', passcode: mine.passcode },
    { code: mine.code, passcode: foreign.passcode },
    foreign,
    ...[mine.passcode.toLowerCase(), ` ${mine.passcode}`, `${mine.passcode} `, ''].map(near),
    ...[mine.passcode.slice(0, 23), `${mine.passcode}A`].map(near),
  ]
  function near(passcode: string) {
    return { code: mine.code.toLowerCase(), passcode }
  }
  const headers = new Set<string>()
  for (const row of rows) {
    const answer = await remove(app, row)
    const error = `Invalid passcode for code ${row.code.toUpperCase()}`
    expect({ row, status: answer.status, text: answer.text }).toEqual({
      row,
      status: 403,
      text: JSON.stringify({ error }),
    })
    headers.add([...answer.headers.keys()].sort().join())
  }
  expect(headers.size).toBe(1)
  for (const { code } of [mine, foreign]) {
    expect((await app.call('GET', `/${code}`)).status).toBe(302)
  }
})
