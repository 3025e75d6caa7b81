import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import type { Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'

/** Deletions in the dashboard take effect after 30 seconds and can be undone until then. */

const CODE = 'SPRING26'
const PATH = `/app/links/${CODE}`
const URL = 'https://example.com/landing'

const remove = (member: Visitor) => member.post(`${PATH}/delete`, {}, { from: PATH })
const undo = (member: Visitor) => member.post(`${PATH}/undo-delete`, {}, { from: PATH })
const statusOf = async (app: TestApp, path: string) => (await app.call('GET', path)).status
const isFree = (app: TestApp) =>
  eventually('the code is free', async () => (await statusOf(app, `/api/lookup/${CODE}`)) === 404)

async function deleted(app: TestApp): Promise<Visitor> {
  const member = await makeMember(app, 'free@example.com')
  await app.claim(CODE, URL)
  expect(await statusOf(app, `/${CODE}`)).toBe(302)
  expect((await remove(member)).status).toBe(303)
  return member
}

test('a deleted link is unknown to visitors at once, and its code is free after 30 seconds', async () => {
  await using app = await testApp()
  await deleted(app)
  expect(await app.call('GET', `/${CODE}`)).toMatchObject({
    status: 404,
    body: { error: `Code not found: ${CODE}` },
  })
  const link = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(link.body.delete_at).toBe('2026-03-01T12:00:30.000Z')
  const claim = () => app.call('POST', '/api/reserve', { key: 'pro', json: { code: CODE } })
  expect((await claim()).status).toBe(409)
  app.advance(30_000)
  await isFree(app)
  expect((await claim()).status).toBe(201)
  expect(problemsOf(app)).toEqual([])
})

test('the stored image of a deleted link is removed when its code becomes free', async () => {
  await using app = await testApp()
  await deleted(app)
  const image = join(app.dataDir, 'cdn', 'qr', `${CODE}.png`)
  await eventually('the image is stored', () => existsSync(image))
  app.advance(30_000)
  await eventually('the image is removed', () => !existsSync(image))
})

test('an undone deletion leaves the link as it was', async () => {
  await using app = await testApp()
  const member = await deleted(app)
  app.advance(29_999)
  expect((await undo(member)).location).toBe(`${PATH}?done=undone`)
  expect(await statusOf(app, `/${CODE}`)).toBe(302)
  app.advance(60_000)
  const link = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(link.body).toMatchObject({ url: URL, hit_count: 2, delete_at: null })
})

test('a second deletion does not postpone the first, and it is too late to undo afterwards', async () => {
  await using app = await testApp()
  const member = await deleted(app)
  const { csrf } = await member.get(PATH)
  app.advance(20_000)
  await remove(member)
  app.advance(10_000)
  await isFree(app)
  expect((await member.post(`${PATH}/undo-delete`, { csrf })).status).toBe(404)
})

test('a deletion that was due while the service was stopped is done at its next start', async () => {
  const { path } = temporaryFolderInMemory()
  try {
    const before = await testApp({ dataDir: path })
    await deleted(before)
    await before.stop()
    await using app = await testApp({ dataDir: path })
    expect(await statusOf(app, `/${CODE}`)).toBe(404)
    app.advance(30_000)
    await isFree(app)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
})

test('shortening the URL again keeps the link', async () => {
  await using app = await testApp()
  await deleted(app)
  expect(await statusOf(app, `/${CODE}`)).toBe(404)
  const again = await app.call('POST', '/api/shorten', { key: 'free', json: { url: URL } })
  expect(again).toMatchObject({ status: 200, body: { code: CODE, reused: true } })
  expect(await statusOf(app, `/${CODE}`)).toBe(302)
})

test('POST /api/delete frees a code at once, also one whose deletion is scheduled', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'free@example.com')
  const { passcode } = await app.claim(CODE, URL)
  await remove(member)
  const json = { code: CODE, passcode }
  expect((await app.call('POST', '/api/delete', { key: 'free', json })).status).toBe(200)
  expect(await statusOf(app, `/api/lookup/${CODE}`)).toBe(404)
  expect(problemsOf(app)).toEqual([])
})

test('the link of another account cannot be deleted or kept', async () => {
  await using app = await testApp()
  const owner = await deleted(app)
  const other = await makeMember(app, 'pro@example.com')
  const { csrf } = await other.get('/app/links')
  for (const action of ['delete', 'undo-delete']) {
    expect((await other.post(`${PATH}/${action}`, { csrf })).status).toBe(404)
  }
  expect((await owner.get(PATH)).text).toContain('This link will be deleted in')
})
