import { expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { accountCommands } from '../../src/cli/accounts.ts'
import { disableLink, enableLink, listDisabled } from '../support/administration.ts'
import { type Answer, eventually, type TestApp, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** What the operator can do about links: by a command, and by the blocklist. */

const DESTINATION = 'https://phish.example/login'
const REASON = 'Phishing, reported on 1 March'

const disable = (app: TestApp, code: string, reason = REASON) => disableLink(app, code, reason)
const enable = enableLink

const visit = (app: TestApp, code: string): Promise<Answer> => app.call('GET', `/${code}`)
const statusOf = async (app: TestApp, code: string) => (await visit(app, code)).status
const answers = (app: TestApp, code: string, status: number): Promise<void> =>
  eventually(`${code} answers ${status}`, async () => (await statusOf(app, code)) === status)

const hitsOf = async (app: TestApp, code: string): Promise<unknown> =>
  (await app.call('GET', `/api/lookup/${code}`)).body.hit_count

function expectGone(answer: Answer, code: string): void {
  expect(answer.body).toEqual({ error: `Link disabled: ${code}` })
  expect(answer.status).toBe(410)
  expect(answer.headers.get('location')).toBeNull()
  expect(answer.headers.get('x-service-code')).toBeNull()
  expect(answer.headers.get('content-type')).toStartWith('application/json')
  expect(answer.headers.get('x-request-id')).toMatch(/./)
}

test('a link that nobody could take down answers 410 after the command, and redirects after enable', async () => {
  await using app = await testApp()
  const { code } = await app.claim('PHISH01', DESTINATION)
  const other = await app.claim('GOOD0001', 'https://good.example/')
  expect(await statusOf(app, code)).toBe(302)
  expect(await disable(app, code.toLowerCase())).toContain(`${code} is disabled`)
  await answers(app, code, 410)
  const hits = await hitsOf(app, code)
  const before = Number((await visit(app, code)).headers.get('x-ratelimit-remaining'))
  const answer = await visit(app, code.toLowerCase())
  expectGone(answer, code)
  expect(answer.headers.get('x-ratelimit-limit')).toBe('300')
  expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(before - 1))
  expect(answer.text).not.toContain(REASON)
  const head = await app.call('HEAD', `/${code}`)
  expect([head.status, head.bytes.length]).toEqual([410, 0])
  expect(await statusOf(app, `${code}/`)).toBe(410)
  expect(await statusOf(app, other.code)).toBe(302)
  expect(await hitsOf(app, code)).toBe(hits)
  await enable(app, code)
  await answers(app, code, 302)
})

test('a disabled code still answers look-ups, lists and QR requests, and the API still changes it', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const { code, passcode } = await app.claim('PHISH01', DESTINATION)
  await disable(app, code)
  await answers(app, code, 410)
  for (const path of [`/api/lookup/${code}`, `/api/qr/${code}`, `/api/qr-image/${code}`]) {
    expect([path, (await app.call('GET', path)).status]).toEqual([path, 200])
  }
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.total).toBe(1)
  const json = { code, passcode, url: 'https://harmless.example/' }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
  expectGone(await visit(app, code), code)
})

test('a disabled code stays disabled after its link is deleted, and nobody can claim it', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const { code, passcode } = await app.claim('PHISH01', DESTINATION)
  await disable(app, code)
  await answers(app, code, 410)
  const deletion = { key: 'free', json: { code, passcode } }
  expect((await app.call('POST', '/api/delete', deletion)).status).toBe(200)
  expectGone(await visit(app, code), code)
  for (const path of [
    `/api/lookup/${code}`,
    `/api/qr/${code}`,
    `/qr/${code}`,
    `/cdn/qr/${code}.png`,
  ]) {
    const { status } = await app.call('GET', path)
    expect([path, status]).toEqual([path, 404])
  }
  const claim = () => app.call('POST', '/api/reserve', { key: 'pro', json: { code } })
  const refused = await claim()
  expect([refused.status, refused.body]).toEqual([409, { error: `Code already in use: ${code}` }])
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir, env: UNLIMITED })
  await eventually('every code is known', async () => (await statusOf(again, code)) === 410)
  await enable(again, code)
  await answers(again, code, 404)
  const json = { code }
  expect((await again.call('POST', '/api/reserve', { key: 'pro-2', json })).status).toBe(201)
})

test('a generated code is never a disabled one', async () => {
  // The same bytes give the same code: the second link's first draw is the disabled one.
  const random = (length: number) => new Uint8Array(length).fill(1)
  await using app = await testApp({ random, env: UNLIMITED })
  const first = await app.shorten('https://one.example/', 'enterprise')
  await disable(app, first.code)
  await answers(app, first.code, 410)
  const deletion = { key: 'enterprise', json: first }
  expect((await app.call('POST', '/api/delete', deletion)).status).toBe(200)
  const second = await app.shorten('https://two.example/', 'enterprise')
  expect(second.code).toHaveLength(8)
  expect(second.code).not.toBe(first.code)
})

test('commands on links refuse what makes no sense, and say what is wrong', async () => {
  await using app = await testApp()
  const { code } = await app.claim('PHISH01')
  await expect(disable(app, 'NOBODYS1')).rejects.toThrow('no link has the code NOBODYS1')
  await expect(enable(app, code)).rejects.toThrow(`${code} is not disabled`)
  await disable(app, code, 'first')
  await disable(app, code, 'second')
  expect(JSON.parse(listDisabled(app))).toEqual({
    code,
    reason: 'second',
    disabled_at: '2026-03-01T12:00:00.000Z',
  })
})

test('account disable refuses the keys of an account, and with --links its links, until account enable', async () => {
  await using app = await testApp()
  const { code } = await app.claim('PHISH01', DESTINATION)
  const other = await app.claim('GOOD0001', 'https://good.example/', 'pro')
  const email = 'free@example.com'
  const { disableAccount, enableAccount } = accountCommands
  const now = async () => [
    (await app.call('GET', '/api/list', { key: 'free' })).status,
    await statusOf(app, code),
    await statusOf(app, other.code),
  ]
  await disableAccount(app.administration, { email })
  expect(await now()).toEqual([401, 302, 302])
  await disableAccount(app.administration, { email, links: true })
  expect(await now()).toEqual([401, 410, 302])
  await enableAccount(app.administration, { email })
  expect(await now()).toEqual([200, 302, 302])
})

/** In one step: a reader sees the old file or the new one. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

test('existing links to a host stop redirecting when it is added to the blocklist, until it leaves', async () => {
  using lists = temporaryFolder()
  const file = join(lists.path, 'list.txt')
  writeFileSync(file, 'other.example\n')
  await using app = await testApp({ env: { ...UNLIMITED, BLOCKLIST_FILES: file } })
  const warm = await app.claim('PHISH01', DESTINATION)
  const cold = await app.claim('PHISH02', 'https://sub.phish.example:8443/')
  const good = await app.claim('GOOD0001', 'https://good.example/')
  expect(await statusOf(app, warm.code)).toBe(302)
  replace(file, 'phish.example\n')
  await answers(app, warm.code, 410)
  expectGone(await visit(app, warm.code), warm.code)
  expectGone(await visit(app, cold.code), cold.code)
  expect(await statusOf(app, good.code)).toBe(302)
  expect((await app.call('GET', `/api/lookup/${warm.code}`)).status).toBe(200)
  replace(file, 'other.example\n')
  await answers(app, warm.code, 302)
  expect(await statusOf(app, cold.code)).toBe(302)
})

test('links to our own host stop when BASE_URL becomes it', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const { code } = await app.claim('LOOP0001', 'https://hop.example/LOOP0001')
  expect(await statusOf(app, code)).toBe(302)
  await app.stop()
  const env = { ...UNLIMITED, BASE_URL: 'https://hop.example' }
  await using again = await testApp({ dataDir: app.dataDir, env })
  expect(await statusOf(again, code)).toBe(410)
})
