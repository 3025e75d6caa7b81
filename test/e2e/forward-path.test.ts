import { expect, test } from 'bun:test'
import { connect as connectSocket } from 'node:net'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { send, WORD } from '../support/link-passwords.ts'

/** Paths behind the address of a link with `forward_path`. */

const CODE = 'WIKI2026'
const MANUAL = 'https://docs.example.com/manual'
const BAD = 'Invalid forward_path: must be off for a destination with a fragment (#)'

/** To a client that sends the target as it is. */
async function answerTo(app: TestApp, target: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const { port } = new URL(app.url)
  const socket = connectSocket(Number(port), '127.0.0.1')
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  socket.on('close', () => resolve(text)).on('error', reject)
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`)
  return await promise
}

async function locationOf(app: TestApp, target: string): Promise<string | number> {
  const answer = await answerTo(app, target)
  return /\r\nlocation: (.*)\r\n/i.exec(answer)?.[1] ?? Number(answer.split(' ', 2)[1])
}

/** Only the control thread adds this header to a redirect. */
const threadAnswers = (app: TestApp, target: string) =>
  eventually(
    'the redirect thread answers',
    async () => !/\r\nx-content-type-options:/i.test(await answerTo(app, target)),
  )

const change = (app: TestApp, json: object, code = CODE) =>
  app.call('PATCH', `/api/links/${code}`, { key: 'free', json })

async function forwarding(more: object = {}, url = MANUAL) {
  const env = { ANONYMOUS_READS_PER_MINUTE: '0', ANONYMOUS_REDIRECTS_PER_MINUTE: '0' }
  const app = await testApp({ env })
  await app.claim(CODE, url)
  const { status, text } = await change(app, { forward_path: 'append', ...more })
  if (status !== 200) throw new Error(text)
  return app
}

test('the path behind an address is added to the destination, as it was sent', async () => {
  await using app = await forwarding({ aliases: ['wiki'] })
  const expected = {
    '/wiki/a/b': `${MANUAL}/a/b`,
    [`/${CODE}/a`]: `${MANUAL}/a`,
    '/wiki/a/': `${MANUAL}/a/`,
    '/wiki': MANUAL,
    '/wiki/': MANUAL,
    '/wiki/%C3%BC%20/a%2Fb': `${MANUAL}/%C3%BC%20/a%2Fb`,
    '/wiki/a?x=1': `${MANUAL}/a`,
    '/wiki/1/2/3/4/5/6/7/8': `${MANUAL}/1/2/3/4/5/6/7/8`,
    '/wiki/1/2/3/4/5/6/7/8/9': 404,
    '/other/a': 404,
  }
  for (const [target, location] of Object.entries(expected)) {
    expect({ target, location: await locationOf(app, target) }).toEqual({ target, location })
  }
  expect((await app.call('GET', `/api/lookup/${CODE}`)).body.hit_count).toBe(8)
})

test('no path leaves the place of the destination', async () => {
  await using app = await forwarding({ aliases: ['wiki'] })
  const refused = '..%2f.. a//b / a%5cb a%2f%2fb %252e%252e/a %25252e%25252e a%2f.'
  for (const rest of refused.split(' ')) {
    const location = await locationOf(app, `/wiki/${rest}`)
    expect({ rest, location }).toEqual({ rest, location: 404 })
  }
  // The server resolves plain dot segments and backslashes before it looks for a link.
  for (const rest of 'a\\..\\..\\b .. ../a a/.. a/../../b %2e%2e %2E./a .%2e/ ./a a/. .'.split(
    ' ',
  )) {
    const location = await locationOf(app, `/wiki/${rest}`)
    expect([404, '/app', MANUAL, `${MANUAL}/a`, `${MANUAL}/a/`]).toContain(location)
  }
})

test('one slash joins, before the query of the destination; queries are joined as usual', async () => {
  await using app = await forwarding({ forward_query: true }, 'https://docs.example.com/?y=2')
  expect(await locationOf(app, `/${CODE}/a?x=1`)).toBe('https://docs.example.com/a?y=2&x=1')
  await change(app, { forward_query: false })
  expect(await locationOf(app, `/${CODE}/a?x=1`)).toBe('https://docs.example.com/a?y=2')
})

test('a link with the whole path wins, then the longest address that forwards', async () => {
  await using app = await forwarding({ aliases: ['wiki', 'wiki/team/x'] })
  await app.claim('OTHER26', 'https://other.example/')
  await change(app, { aliases: ['wiki/a', 'wiki/b'] }, 'OTHER26')
  expect(await locationOf(app, '/wiki/a')).toBe('https://other.example/')
  expect(await locationOf(app, '/wiki/a/c')).toBe(`${MANUAL}/a/c`)
  expect(await locationOf(app, '/wiki/team/x/y')).toBe(`${MANUAL}/y`)
  await change(app, { forward_path: 'append' }, 'OTHER26')
  expect(await locationOf(app, '/wiki/a/c')).toBe('https://other.example/c')
  await change(app, { forward_path: 'off' })
  expect(await locationOf(app, '/wiki/team/x/y')).toBe(404)
  expect((await app.call('GET', `/api/links/${CODE}`, { key: 'free' })).body).toMatchObject({
    forward_path: 'off',
  })
})

test('the chosen destination of a rule gets the path, and an off link answers nothing', async () => {
  const destinations = [{ when: { query: { v: '2' } }, url: 'https://two.example/docs' }]
  await using app = await forwarding({ destinations })
  expect(await locationOf(app, `/${CODE}/a?v=2`)).toBe('https://two.example/docs/a')
  expect(await locationOf(app, `/${CODE}/a`)).toBe(`${MANUAL}/a`)
  await change(app, { paused: true })
  expect(await locationOf(app, `/${CODE}/a`)).toBe(404)
})

test('a redirect thread that knows a link answers as the control thread does', async () => {
  await using app = await forwarding({ aliases: ['wiki'] })
  await app.claim('OTHER26', 'https://other.example/')
  const follow = async (times: number) => {
    for (let n = 0; n < times; n++) {
      expect(await locationOf(app, '/wiki/a/b?x=1')).toBe(`${MANUAL}/a/b`)
      expect(await locationOf(app, '/Wiki/a')).toBe(`${MANUAL}/a`)
    }
  }
  await follow(1)
  await threadAnswers(app, '/wiki/a/b')
  await follow(5)
  expect(await locationOf(app, '/wiki/1/2/3/4/5/6/7/8')).toBe(`${MANUAL}/1/2/3/4/5/6/7/8`)
  expect(await locationOf(app, '/wiki/1/2/3/4/5/6/7/8/9')).toBe(404)
  expect(await locationOf(app, '/OTHER26/a')).toBe(404)
  await change(app, { aliases: ['wiki/a'] }, 'OTHER26')
  expect(await locationOf(app, '/wiki/a')).toBe('https://other.example/')
  expect(await locationOf(app, '/wiki/b')).toBe(`${MANUAL}/b`)
  await change(app, { forward_path: 'off' })
  expect(await locationOf(app, '/wiki/b')).toBe(404)
})

test('an alias that is older than a route of the service does not answer in its place', async () => {
  await using app = await forwarding({ aliases: ['wiki'] })
  app.administer(({ db }) => db.run("UPDATE aliases SET path = 'rest', small_path = 'rest'"))
  await threadAnswers(app, `/${CODE}/a`)
  expect(await locationOf(app, '/rest/old/path')).toBe(`${MANUAL}/old/path`)
  expect(await locationOf(app, '/rest/v3/short-urls')).toBeNumber()
})

test('the form of a password leads to the path that was asked for', async () => {
  await using app = await forwarding({ password: WORD })
  const form = await send(app, WORD, `/${CODE}/a/b`)
  expect([form.status, form.headers.get('location')]).toEqual([303, `${MANUAL}/a/b`])
})

test('a destination with a fragment and the property exclude each other', async () => {
  await using app = await testApp()
  const hash = 'https://docs.example.com/#top'
  const refused = { status: 400, body: { error: BAD } }
  const json = { url: hash, forward_path: 'append' }
  expect(await app.call('POST', '/api/shorten', { key: 'free', json })).toMatchObject(refused)
  const { passcode } = await app.claim(CODE, hash)
  expect(await change(app, { forward_path: 'append' })).toMatchObject(refused)
  await app.call('POST', '/api/update', {
    key: 'free',
    json: { code: CODE, passcode, url: MANUAL },
  })
  expect((await change(app, { forward_path: 'append' })).body.forward_path).toBe('append')
  const update = { code: CODE, passcode, url: hash }
  expect(await app.call('POST', '/api/update', { key: 'free', json: update })).toMatchObject(
    refused,
  )
  const destinations = [{ when: { query: { v: '2' } }, url: hash }]
  expect(await change(app, { destinations })).toMatchObject(refused)
  expect((await change(app, { forward_path: 'prepend' })).body.error).toBe(
    'Invalid forward_path: must be off or append',
  )
  expect((await app.call('GET', `/api/lookup/${CODE}`)).body.url).toBe(MANUAL)
})
