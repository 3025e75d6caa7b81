import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'

/** The spec's chapter "States and transitions", row by row. */

type State = 'none' | 'reserved' | 'active'

/** The state of a code as the world sees it, after a check that all of its addresses agree. */
async function stateOf(app: TestApp, code: string): Promise<State> {
  const lookup = await app.call('GET', `/api/lookup/${code}`)
  const visit = await app.call('HEAD', `/${code}`)
  const image = await app.call('GET', `/api/qr-image/${code}`)
  expect(image.status).toBe(lookup.status)
  expect(visit.status).toBe(lookup.status === 200 && lookup.body.url !== null ? 302 : 404)
  if (lookup.status === 404) return 'none'
  return lookup.body.url === null ? 'reserved' : 'active'
}

const post = (app: TestApp, path: string, json: unknown, key = 'free') =>
  app.call('POST', path, { key, json })

const listed = async (app: TestApp, key = 'free') =>
  (await app.call('GET', '/api/list', { key })).body.total

// spec: States and transitions | (none) POST /api/shorten
test('none to active: a shortened URL has a code, and the same URL gives it again', async () => {
  await using app = await testApp()
  const first = await post(app, '/api/shorten', { url: 'https://example.com/' })
  const code = first.body.code as string
  expect(await stateOf(app, code)).toBe('active')
  const again = await post(app, '/api/shorten', { url: 'https://example.com/' })
  expect(again.body).toEqual({ ...first.body, reused: true, passcode: null })
  expect(await listed(app)).toBe(1)
})

test('none stays none: an invalid URL, a blocked one and a missing key make no code', async () => {
  await using app = await testApp()
  const answers = [
    await post(app, '/api/shorten', { url: 'nonsense' }),
    await post(app, '/api/shorten', { url: 'http://hop.test/' }),
    await app.call('POST', '/api/shorten', { json: { url: 'https://example.com/' } }),
    await post(app, '/api/reserve', { code: '!' }),
    await app.call('POST', '/api/reserve', { json: { code: 'SPRING26' } }),
    await post(app, '/api/bulk-shorten', { urls: ['nonsense', 'http://hop.test/'] }),
    await post(app, '/api/update', { code: 'SPRING26', passcode: 'A', url: 'https://a.example/' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([400, 422, 401, 400, 401, 400, 403])
  expect(await listed(app)).toBe(0)
  expect(await stateOf(app, 'SPRING26')).toBe('none')
})

// spec: States and transitions | (none) POST /api/bulk-shorten
test('none to active: each valid item of a bulk request, with results in input order', async () => {
  await using app = await testApp()
  const urls = ['https://b.example/', 'nonsense', 'https://a.example/']
  const { status, body } = await post(app, '/api/bulk-shorten', { urls })
  const [b, bad, a] = body.results as Record<string, string>[]
  expect({ status, count: body.count }).toEqual({ status: 201, count: 3 })
  expect([b?.url, a?.url]).toEqual(['https://b.example/', 'https://a.example/'])
  expect(bad).toMatchObject({ ok: false })
  expect(await stateOf(app, `${b?.code}`)).toBe('active')
  expect(await stateOf(app, `${a?.code}`)).toBe('active')
  expect(await listed(app)).toBe(2)
})

// spec: States and transitions | (none) POST /api/reserve
// spec: States and transitions | reserved
test('none to reserved: a valid code that nobody uses; visiting it is 404', async () => {
  await using app = await testApp()
  const { status, body } = await post(app, '/api/reserve', { code: 'spring26' })
  expect({ status, code: body.code, url: body.url }).toEqual({
    status: 201,
    code: 'SPRING26',
    url: null,
  })
  expect(body.passcode).toMatch(/^[A-Z0-9]{24}$/)
  expect(await stateOf(app, 'SPRING26')).toBe('reserved')
  expect((await post(app, '/api/reserve', { code: 'SPRING26' }, 'free-2')).status).toBe(409)
  expect(await stateOf(app, 'SPRING26')).toBe('reserved')
})

// spec: What the service does | A caller can also reserve
// spec: States and transitions | reserved POST /api/update
// spec: States and transitions | active
test('reserved to active: by the owner with the passcode and a good URL alone', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.reserve('SPRING26')
  const url = 'https://example.com/'
  const refused = [
    await post(app, '/api/update', { code, passcode: 'A'.repeat(24), url }),
    await post(app, '/api/update', { code, passcode, url }, 'free-2'),
    await post(app, '/api/update', { code, passcode, url: 'nonsense' }),
    await post(app, '/api/update', { code, passcode, url: 'http://hop.test/' }),
    await app.call('POST', '/api/update', { json: { code, passcode, url } }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 400, 422, 401])
  expect(await stateOf(app, code)).toBe('reserved')
  const { status, body } = await post(app, '/api/update', { code, passcode, url })
  expect({ status, updated: body.updated }).toEqual({ status: 200, updated: true })
  expect(await stateOf(app, code)).toBe('active')
})

test('a reserved code given a URL is the code of that URL for its account', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.reserve('SPRING26')
  await post(app, '/api/update', { code, passcode, url: 'https://example.com/' })
  const { status, body } = await post(app, '/api/shorten', { url: 'https://example.com/' })
  expect({ status, ...body }).toMatchObject({ status: 200, code, reused: true, passcode: null })
  expect(await listed(app)).toBe(1)
})

// spec: What the service does | The destination of a code can be changed
// spec: States and transitions | active POST /api/update
test('active to active: the destination is replaced, and again to the same effect', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/old')
  const json = { code, passcode, url: 'https://example.com/new' }
  const first = await post(app, '/api/update', json)
  const again = await post(app, '/api/update', json)
  expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: first.body })
  expect(await stateOf(app, code)).toBe('active')
  const followed = await app.call('GET', `/${code}`)
  expect(followed.headers.get('location')).toBe('https://example.com/new')
})

// spec: States and transitions | reserved or active POST /api/delete
// spec: States and transitions | deleted
test('reserved or active to deleted: by the owner with the passcode alone', async () => {
  await using app = await testApp()
  const links = [await app.reserve('SPRING26'), await app.shorten('https://example.com/')]
  for (const { code, passcode } of links) {
    const before = await stateOf(app, code)
    const refused = [
      await post(app, '/api/delete', { code, passcode: 'A'.repeat(24) }),
      await post(app, '/api/delete', { code, passcode }, 'free-2'),
      await app.call('POST', '/api/delete', { json: { code, passcode } }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 401])
    expect(await stateOf(app, code)).toBe(before)
    const { status, body } = await post(app, '/api/delete', { code, passcode })
    expect({ status, body }).toEqual({ status: 200, body: { code, deleted: true } })
    expect(await stateOf(app, code)).toBe('none')
    expect((await post(app, '/api/reserve', { code }, 'free-2')).status).toBe(201)
    expect(await stateOf(app, code)).toBe('reserved')
  }
})

// spec: States and transitions | deleted POST /api/delete
test('deleted stays deleted: deleting again is 403, as if the code had never been', async () => {
  await using app = await testApp()
  const link = await app.shorten('https://example.com/')
  await post(app, '/api/delete', link)
  for (const json of [link, { ...link, passcode: 'A'.repeat(24) }]) {
    const { status, body } = await post(app, '/api/delete', json)
    const error = `Invalid passcode for code ${link.code}`
    expect({ status, body }).toEqual({ status: 403, body: { error } })
  }
  expect((await post(app, '/api/update', { ...link, url: 'https://a.example/' })).status).toBe(403)
  expect(await stateOf(app, link.code)).toBe('none')
})

// spec: What the service does | Anyone who visits the short URL
// spec: States and transitions | active GET /{code}
test('active stays active: a visit is a 302 to the destination and one hit more', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  for (const hits of [1, 2, 3]) {
    const { status, headers } = await app.call('GET', `/${code}`)
    expect({ status, location: headers.get('location') }).toEqual({
      status: 302,
      location: 'https://example.com/',
    })
    expect((await app.call('GET', `/api/lookup/${code}`)).body.hit_count).toBe(hits)
  }
  expect(await stateOf(app, code)).toBe('active')
})
