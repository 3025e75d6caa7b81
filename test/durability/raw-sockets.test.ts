import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeAccount, Service } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import { BODY, type HostileRequest } from '../support/hostile-bytes.ts'
import { HOSTILE_REQUESTS } from '../support/hostile-requests.ts'

/**
 * What the compiled program makes of bytes that no well-behaved client sends. None may crash it,
 * hold others up, or bring one client's answer to another.
 */

const LANDING = 'https://example.com/landing'
const LIVE = 'GET /-/live HTTP/1.1\r\nHost: hop.test\r\n\r\n'

const folder = temporaryFolder()
let service: Service
let key: string

beforeAll(async () => {
  const env = {
    DATA_DIR: folder.path,
    BASE_URL: 'http://hop.test',
    ANONYMOUS_READS_PER_MINUTE: '0',
    ENTERPRISE_WRITES_PER_MINUTE: '0',
  }
  key = await makeAccount(env)
  service = await Service.start(env)
  const reserved = await service.post('/api/reserve', key, { code: 'HOPCODE1' })
  const { passcode } = (await reserved.json()) as { passcode: string }
  await service.post('/api/update', key, { code: 'HOPCODE1', passcode, url: LANDING })
  await service.shorten(key, JSON.parse(BODY).url)
})

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const open = (bodiless: readonly number[] = []) => Conversation.open(service.url, bodiless)
const withKey = (bytes: string) => Buffer.from(bytes.replaceAll('{key}', key), 'latin1')

/** Somebody else is served, with an answer of their own. */
async function othersAreServed(): Promise<void> {
  const response = await service.fetch('/HOPCODE1')
  expect([response.status, response.headers.get('location')]).toEqual([302, LANDING])
  expect(response.headers.get('x-service-code')).toBe('HOPCODE1')
  expect((await service.fetch('/api/status')).status).toBe(200)
}

/** What must stand in no answer, whatever was asked. */
function isNobodyElses(headers: Headers, text: string): void {
  expect(headers.has('x-injected')).toBe(false)
  expect(text).not.toContain(key)
  if (headers.has('location')) expect(headers.get('location')).toBe(LANDING)
}

test.each(HOSTILE_REQUESTS)(
  '$name',
  async ({ bytes, answers, connection, bodiless = [], byBun }) => {
    using client = await open(bodiless)
    client.send(withKey(bytes))
    const wanted = answers.map((answer) => (typeof answer === 'number' ? answer : answer[0]))
    if (connection === 'closed') await client.closed()
    else {
      await client.answers(wanted.length)
      // Were a smuggled request answered, it would be before this one.
      client.send(LIVE)
      if (connection === 'open') wanted.push(200)
    }
    const told = await client.answers(wanted.length)
    expect(told.map(({ status }) => status)).toEqual(wanted)
    if (connection === 'open') expect(told.at(-1)?.text).toContain('"status":"live"')
    for (const [i, { headers, text }] of told.entries()) {
      isNobodyElses(headers, text)
      const answer = answers[i]
      if (typeof answer === 'object') expect(text).toContain(answer[1])
      if (byBun) expect(text).toBe('')
    }
    await othersAreServed()
    if (connection === 'deaf') expect(await client.answers(0)).toHaveLength(wanted.length)
  },
)

test('docs/http-edge.md lists what Bun answers by itself, and nothing else', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/http-edge.md'), 'utf8')
  const rows = [...page.matchAll(/^\| (.+?) +\| (\d{3}|none) /gm)].map(([, name, answer]) => ({
    ...{ name, answer },
  }))
  const shown = ({ name, answers }: HostileRequest) => ({
    ...{ name: name.replaceAll('|', '\\|'), answer: String(answers[0] ?? 'none') },
  })
  expect(rows).toEqual(HOSTILE_REQUESTS.filter(({ byBun }) => byBun).map(shown))
})
