import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'

/** What the spec says of `hit_count` and `total_redirects`, and design 4.17 of both. */

/** These tests follow links hundreds of times and are not about the read budget. */
const UNLIMITED = { ANONYMOUS_READS_PER_MINUTE: '0', ANONYMOUS_REDIRECTS_PER_MINUTE: '0' }

const DESTINATION = 'https://example.com/landing'

async function follow(app: TestApp, code: string, times: number): Promise<void> {
  for (let left = times; left > 0; left -= 50) {
    const visits = Array.from({ length: Math.min(left, 50) }, () => app.call('GET', `/${code}`))
    for (const { status } of await Promise.all(visits)) expect(status).toBe(302)
  }
}

async function hitsOf(app: TestApp, code: string): Promise<unknown> {
  return (await app.call('GET', `/api/lookup/${code}`)).body.hit_count
}

async function total(app: TestApp): Promise<unknown> {
  return (await app.call('GET', '/api/status')).body.total_redirects
}

// spec: Code (short link) | hit_count
// design: 4.17 hits
test.each([1, 60_000])(
  'hit_count rises by one per followed short link in every answer, with HIT_FLUSH_MS=%d',
  async (ms) => {
    await using app = await testApp({ env: { ...UNLIMITED, HIT_FLUSH_MS: String(ms) } })
    await app.claim('SPRING26', DESTINATION, 'pro')
    await app.claim('OTHERS', 'https://example.com/others', 'pro')
    for (let followed = 1; followed <= 100; followed++) {
      await app.call('GET', '/SPRING26')
      expect(await hitsOf(app, 'SPRING26')).toBe(followed)
      expect(await total(app)).toBe(followed)
    }
    const { body } = await app.call('GET', '/api/list', { key: 'pro' })
    expect(body.items).toMatchObject([
      { code: 'OTHERS', hit_count: 0 },
      { code: 'SPRING26', hit_count: 100 },
    ])
  },
)

// design: 4.17 hits
test('under simultaneous visits and flushes, every answer has all redirects served before it and no more than were asked for', async () => {
  await using app = await testApp({ env: { ...UNLIMITED, HIT_FLUSH_MS: '1' }, journalEntries: 64 })
  await app.claim('SPRING26', DESTINATION, 'pro')
  let begun = 0
  let served = 0
  const visitor = async () => {
    for (let i = 0; i < 100; i++) {
      begun++
      await app.call('GET', '/SPRING26')
      served++
    }
  }
  const readers = {
    lookup: () => hitsOf(app, 'SPRING26'),
    status: () => total(app),
    list: async () => {
      const { body } = await app.call('GET', '/api/list', { key: 'enterprise-2' })
      expect(body.items).toEqual([])
      const mine = await app.call('GET', '/api/list?search=spring', { key: 'pro' })
      return (mine.body.items as { hit_count: number }[])[0]?.hit_count
    },
  }
  const visits = Promise.all(Array.from({ length: 8 }, visitor))
  for (let round = 0; served < 800 && round < 500; round++) {
    for (const [name, read] of Object.entries(readers)) {
      const least = served
      const count = Number(await read())
      expect([name, count >= least, count <= begun]).toEqual([name, true, true])
    }
  }
  await visits
  for (const read of Object.values(readers)) expect(await read()).toBe(800)
})

// spec: GET /api/status | total_redirects
// design: 4.12 total_redirects
test.each([1, 60_000])(
  'deleting a code ends its count and not the total; claimed again it starts at 0, with HIT_FLUSH_MS=%d',
  async (ms) => {
    await using app = await testApp({ env: { ...UNLIMITED, HIT_FLUSH_MS: String(ms) } })
    const json = await app.claim('SPRING26', DESTINATION, 'pro')
    await follow(app, 'SPRING26', 7)
    expect((await app.call('POST', '/api/delete', { key: 'pro', json })).status).toBe(200)
    expect(await total(app)).toBe(7)
    await app.claim('SPRING26', 'https://example.com/new', 'free')
    expect(await hitsOf(app, 'SPRING26')).toBe(0)
    await follow(app, 'SPRING26', 2)
    expect(await hitsOf(app, 'SPRING26')).toBe(2)
    expect(await total(app)).toBe(9)
    await app.stop()
    await using again = await testApp({ dataDir: app.dataDir, env: UNLIMITED })
    expect(await hitsOf(again, 'SPRING26')).toBe(2)
    expect(await total(again)).toBe(9)
  },
)

// design: 4.17 hits
test.each([1, 60_000])(
  'hits outlive one restart after another on the same data folder, none lost or doubled, with HIT_FLUSH_MS=%d',
  async (ms) => {
    const env = { ...UNLIMITED, HIT_FLUSH_MS: String(ms) }
    await using app = await testApp({ env, journalEntries: 64 })
    await app.claim('SPRING26', DESTINATION, 'pro')
    await app.claim('OTHERS', 'https://example.com/others', 'pro')
    await follow(app, 'SPRING26', 30)
    await app.stop()
    for (const round of [1, 2, 3, 4]) {
      await using again = await testApp({ dataDir: app.dataDir, env, journalEntries: 64 })
      expect(await hitsOf(again, 'SPRING26')).toBe(30 * round)
      await follow(again, 'SPRING26', 30)
      await follow(again, 'OTHERS', 1)
      expect(await hitsOf(again, 'SPRING26')).toBe(30 * (round + 1))
      expect(await hitsOf(again, 'OTHERS')).toBe(round)
      expect(await total(again)).toBe(30 * (round + 1) + round)
      await again.stop()
    }
  },
)

// design: 4.17 hits
test('hits not yet flushed when the service dies are counted at the next start, once', async () => {
  using copy = temporaryFolder()
  const env = { ...UNLIMITED, HIT_FLUSH_MS: '60000' }
  await using app = await testApp({ env, journalEntries: 64 })
  const { passcode } = await app.claim('SPRING26', DESTINATION, 'pro')
  await follow(app, 'SPRING26', 50)
  await app.stop()
  await using second = await testApp({ dataDir: app.dataDir, env })
  await follow(second, 'SPRING26', 40)
  // What a folder holds at this moment is what a killed process leaves behind.
  const dataDir = join(copy.path, 'data')
  const filter = (path: string) => basename(path) !== 'cdn'
  cpSync(app.dataDir, dataDir, { recursive: true, filter })
  let counted = 90
  for (const visits of [0, 5, 0, 5]) {
    await using again = await testApp({ dataDir, env })
    expect(await hitsOf(again, 'SPRING26')).toBe(counted)
    expect(await total(again)).toBe(counted)
    await follow(again, 'SPRING26', visits)
    counted += visits
    await again.stop()
  }
  await using last = await testApp({ dataDir, env })
  const key = app.key('pro')
  await last.call('POST', '/api/delete', { key, json: { code: 'SPRING26', passcode } })
  expect((await last.call('GET', '/SPRING26')).status).toBe(404)
  expect(await total(last)).toBe(100)
})

// design: 4.17 hits
test('a full hit journal fails no redirect, and nothing is lost or doubled', async () => {
  const env = { ...UNLIMITED, HIT_FLUSH_MS: '60000' }
  await using app = await testApp({ env, journalEntries: 64 })
  const json = await app.claim('SPRING26', DESTINATION, 'pro')
  await app.claim('OTHERS', 'https://example.com/others', 'pro')
  await follow(app, 'SPRING26', 64)
  await follow(app, 'OTHERS', 100)
  await follow(app, 'SPRING26', 136)
  expect(await hitsOf(app, 'SPRING26')).toBe(200)
  expect(await hitsOf(app, 'OTHERS')).toBe(100)
  expect(await total(app)).toBe(300)
  expect((await app.call('POST', '/api/delete', { key: 'pro', json })).status).toBe(200)
  await app.claim('SPRING26', 'https://example.com/new', 'pro')
  expect(await hitsOf(app, 'SPRING26')).toBe(0)
  await follow(app, 'SPRING26', 3)
  expect(await total(app)).toBe(303)
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir, env, journalEntries: 64 })
  expect(await hitsOf(again, 'SPRING26')).toBe(3)
  expect(await hitsOf(again, 'OTHERS')).toBe(100)
  expect(await total(again)).toBe(303)
})
