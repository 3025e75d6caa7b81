import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { Conversation, type Told } from '../support/conversation.ts'

/** What clients are told once the service has begun to stop, before it closes their connections. */

const STOPPING_PATHS = [
  ['GET', '/SPRING26', 302],
  ['HEAD', '/SPRING26', 302],
  ['GET', '/SPRING26/', 302],
  ['GET', '/NOBODY99', 404],
  ['GET', '/api/status', 200],
  ['GET', '/api/lookup/SPRING26', 200],
  ['GET', '/api/lookup/NOBODY99', 404],
  ['GET', '/api/list', 401],
  ['POST', '/api/shorten', 401],
  ['PUT', '/api/shorten', 405],
  ['GET', '/qr/SPRING26', 302],
  ['GET', '/cdn/qr/SPRING26.png', 200],
  ['GET', '/-/live', 200],
  ['GET', '/-/ready', 503],
  ['GET', '/-/metrics', 200],
  ['GET', '/app', 303],
  ['GET', '/app/sign-in', 200],
  ['GET', '/app/nothing', 404],
  ['GET', '/docs', 200],
  ['GET', '/docs/json', 200],
  ['GET', '/some/other/path', 404],
] as const

async function ask(app: TestApp, method: string, path: string, more: string[] = []): Promise<Told> {
  using client = await Conversation.open(app.url, method === 'HEAD' ? [0] : [])
  client.send([`${method} ${path} HTTP/1.1`, 'Host: hop.test', ...more, '', ''].join('\r\n'))
  const [answer] = await client.answers(1)
  if (!answer) throw new Error(`${method} ${path} has no answer`)
  return answer
}

test('from the beginning of a stop on, every answer says Connection: close', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  for (const [method, path] of STOPPING_PATHS) {
    const { headers } = await ask(app, method, path)
    expect([method, path, headers.get('connection')]).toEqual([method, path, null])
  }
  await app.beginStop()
  for (const [method, path, status] of STOPPING_PATHS) {
    const answer = await ask(app, method, path)
    const connection = answer.headers.get('connection')
    expect([method, path, answer.status, connection]).toEqual([method, path, status, 'close'])
  }
})

test('a redirect over its budget and one that fails say Connection: close during a stop', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  await app.beginStop()
  const answers = [await ask(app, 'GET', '/NOBODY99'), await ask(app, 'GET', '/NOBODY99')]
  expect(answers.map(({ status }) => status)).toEqual([404, 429])
  for (const { headers } of answers) expect(headers.get('connection')).toBe('close')
})

test('a request under way when the stop begins is answered with Connection: close', async () => {
  await using app = await testApp()
  const key = app.key('free')
  using client = await Conversation.open(app.url)
  const body = '{"url":"https://example.com/late"}'
  const head = ['POST /api/shorten HTTP/1.1', 'Host: hop.test', `X-API-Key: ${key}`]
  const more = ['Content-Type: application/json', `Content-Length: ${body.length}`, '', '']
  client.send([...head, ...more].join('\r\n') + body.slice(0, 5))
  // Another connection's answer shows that the service has read this one's head.
  await ask(app, 'GET', '/-/live')
  await app.beginStop()
  client.send(body.slice(5))
  const { answers } = await client.closed()
  expect(answers.map(({ status }) => status)).toEqual([201])
  expect(answers[0]?.headers.get('connection')).toBe('close')
})
