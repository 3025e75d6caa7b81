import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Service } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import { AMBIGUOUS, ANSWERED, get, LIVE, REFUSED } from '../support/hostile-requests.ts'
import { LANDING, startTarget } from './lib/hostile-service.ts'

/**
 * What the compiled program makes of bytes that no well-behaved client sends. None may crash it,
 * hold others up, or bring one client's answer to another.
 */

const folder = temporaryFolder()
let service: Service
let key: string

beforeAll(async () => {
  ;({ service, key } = await startTarget(folder.path))
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

test.each(ANSWERED)('$name', async ({ bytes, answers, connection, bodiless = [] }) => {
  using client = await open(bodiless)
  client.send(withKey(bytes))
  const wanted = answers.map((answer) => (typeof answer === 'number' ? answer : answer[0]))
  if (connection === 'closed') await client.closed()
  else {
    await client.answers(wanted.length)
    // Were a smuggled request answered, it would be before this one.
    client.send(get('/-/live'))
    if (connection === 'open') wanted.push(200)
  }
  const told = await client.answers(wanted.length)
  expect(told.map(({ status }) => status)).toEqual(wanted)
  if (connection === 'open') expect(told.at(-1)?.text).toContain(LIVE)
  for (const [i, { headers, text }] of told.entries()) {
    isNobodyElses(headers, text)
    const answer = answers[i]
    if (typeof answer === 'object') expect(text).toContain(answer[1])
  }
  await othersAreServed()
  if (connection === 'deaf') expect(await client.answers(0)).toHaveLength(wanted.length)
})

async function expectRefused(bytes: string): Promise<void> {
  using client = await open()
  client.send(withKey(bytes))
  const { answers } = await client.closed()
  expect([bytes.slice(0, 1000), answers.length > 1]).toEqual([bytes.slice(0, 1000), false])
  for (const { status, text } of answers) {
    expect([status >= 400 && status < 600, text]).toEqual([true, ''])
  }
  await othersAreServed()
}

test.each(Object.entries(REFUSED))('%s ends the connection', (_, bytes) => expectRefused(bytes))

test.each(Object.entries(AMBIGUOUS))('%s: no smuggled request is answered', async (_, rows) => {
  for (const bytes of rows) await expectRefused(bytes)
})
