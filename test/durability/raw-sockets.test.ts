import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Service } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import { get, type HostileRequest, LIVE } from '../support/hostile-bytes.ts'
import { HOSTILE_REQUESTS } from '../support/hostile-requests.ts'
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
      if (byBun) expect(text).toBe('')
    }
    await othersAreServed()
    if (connection === 'deaf') expect(await client.answers(0)).toHaveLength(wanted.length)
  },
)

test('docs/http-edge.md lists what Bun answers by itself, and nothing else', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/http-edge.md'), 'utf8')
  const listed = [...page.matchAll(/^\*\*(\d{3}|none)[^*]*:\*\* ([\s\S]+?)\n\n/gm)].flatMap(
    ([, answer, names = '']) =>
      names.split(/\s·\s/).map((name) => `${answer} ${name.replaceAll('\n', ' ')}`),
  )
  const shown = ({ name, answers }: HostileRequest) => `${answers[0] ?? 'none'} ${name}`
  const wanted = HOSTILE_REQUESTS.filter(({ byBun }) => byBun).map(shown)
  expect(listed.toSorted()).toEqual(wanted.toSorted())
})
