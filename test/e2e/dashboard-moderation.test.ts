import { expect, test } from 'bun:test'
import { accounts as subject } from '../../src/accounts/operations/accounts.ts'
import { disableAccount, enableAccount } from '../../src/cli/accounts.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { OWNER, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { operationsOn } from '../support/subjects.ts'

/** The pages on which the owner of the service disables links, and what their account sees. */

const LINKS = '/app/service/links'
const ACCOUNTS = '/app/service/accounts'
const ENV = { ANONYMOUS_READS_PER_MINUTE: '0' }
const DESTINATION = 'https://phish.example/login'

const statusOf = async (app: TestApp, code: string): Promise<number> =>
  (await app.call('GET', `/${code}`)).status

async function accountPath(owner: Visitor, email: string): Promise<string> {
  const { text } = await owner.get(`${ACCOUNTS}?search=${encodeURIComponent(email)}`)
  return new RegExp(`href="(${ACCOUNTS}/\\d+)">${email}<`).exec(text)?.[1] ?? ''
}

test('the owner finds any link by its code or short URL, disables it with a reason, and enables it', async () => {
  await using app = await testApp({ env: ENV })
  const { owner } = await setUpOwner(app)
  const { code } = await app.claim('PHISH01', DESTINATION)
  for (const text of [code, code.toLowerCase(), `http://hop.test/${code}?a=b`]) {
    const found = await owner.get(`${LINKS}?code=${encodeURIComponent(text)}`)
    expect([text, found.location]).toEqual([text, `${LINKS}/${code}`])
  }
  const before = await owner.get(`${LINKS}/${code}`)
  expect(before.text).toContain('free@example.com')
  expect(before.text).toContain('phish.example')
  expect(await statusOf(app, code)).toBe(302)
  const reason = 'Phishing <b>& more</b>'
  const path = `${LINKS}/${code}`
  const done = await owner.post(`${path}/disable`, { reason }, { from: path })
  expect(done.location).toBe(`${path}?done=disabled`)
  // The very next visit: nothing may be cached once the page has answered.
  expect(await statusOf(app, code)).toBe(410)
  const list = await owner.get(LINKS)
  expect(list.text).toContain(`href="${path}">${code}</a>`)
  expect(list.text).toContain('Phishing &lt;b&gt;&amp; more&lt;/b&gt;')
  const enabled = await owner.post(`${path}/enable`, {}, { from: path })
  expect(enabled.location).toBe(`${path}?done=enabled`)
  expect(await statusOf(app, code)).toBe(302)
  expect((await owner.get(LINKS)).text).toContain('No disabled codes.')
})

test('an account sees on its pages that a link is disabled, and why; its update changes no more', async () => {
  await using app = await testApp({ env: ENV })
  const { owner } = await setUpOwner(app)
  const { code } = await app.claim('PHISH01', DESTINATION)
  const member = await makeMember(app, 'free@example.com')
  const path = `${LINKS}/${code}`
  await owner.post(`${path}/disable`, { reason: 'Reported & checked' }, { from: path })
  for (const seen of [await member.get(`/app/links/${code}`), await member.get('/app/links')]) {
    expect(seen.text).toContain('Reported &amp; checked')
  }
  const changed = await member.post(
    `/app/links/${code}/settings`,
    { url: 'https://harmless.example/' },
    { from: `/app/links/${code}/settings` },
  )
  expect(changed.location).toContain('done=saved')
  expect(await statusOf(app, code)).toBe(410)
  await member.post(`/app/links/${code}/delete`, {})
  expect(await statusOf(app, code)).toBe(410)
  app.advance(30_000)
  await eventually('the link is deleted', async () => {
    const { status } = await app.call('GET', `/api/lookup/${code}`)
    return status === 404
  })
  const claim = await app.call('POST', '/api/reserve', { key: 'pro', json: { code } })
  expect(claim.status).toBe(409)
  const gone = await owner.get(path)
  expect(gone.text).toContain('This link was deleted.')
  const enabled = await owner.post(`${path}/enable`, {}, { from: path })
  expect(enabled.location).toBe(LINKS)
  expect(await statusOf(app, code)).toBe(404)
})

test('disabling an account stops its links if the box is ticked, and enabling it restores them', async () => {
  await using app = await testApp({ env: ENV })
  const { owner } = await setUpOwner(app)
  const { code } = await app.claim('PHISH01', DESTINATION)
  const other = await app.claim('GOOD0001', 'https://good.example/', 'pro')
  const path = await accountPath(owner, 'free@example.com')
  expect(await statusOf(app, code)).toBe(302)
  const from = `${path}/disable`
  await owner.post(`${path}/disable`, {}, { from })
  expect(await statusOf(app, code)).toBe(302)
  expect((await owner.get(path)).text).toContain('Disable its links too')
  await owner.post(`${path}/disable`, { links: '1' }, { from: path })
  expect(await statusOf(app, code)).toBe(410)
  expect(await statusOf(app, other.code)).toBe(302)
  // Another tab, without the box: what was stopped stays so.
  await owner.post(`${path}/disable`, {}, { from })
  expect(await statusOf(app, code)).toBe(410)
  expect((await owner.get(`${LINKS}/${code}`)).text).toContain('with its account')
  await owner.post(`${path}/enable`, {}, { from: path })
  expect(await statusOf(app, code)).toBe(302)
  const { status } = await app.call('GET', '/api/list', { key: 'free' })
  expect(status).toBe(200)
})

test('the commands disable an account with its links, and enable it; never the only owner', async () => {
  await using app = await testApp({ env: ENV })
  await setUpOwner(app)
  const { code } = await app.claim('PHISH01', DESTINATION)
  const run = (work: typeof disableAccount, email: string, links: boolean) =>
    work(app.administration, { email, links })
  expect(await statusOf(app, code)).toBe(302)
  expect(await run(disableAccount, 'free@example.com', true)).toContain('get 410')
  expect(await statusOf(app, code)).toBe(410)
  expect((await app.call('GET', '/api/list', { key: 'free' })).status).toBe(401)
  await run(enableAccount, 'FREE@example.com', false)
  expect(await statusOf(app, code)).toBe(302)
  expect((await app.call('GET', '/api/list', { key: 'free' })).status).toBe(200)
  await expect(run(disableAccount, OWNER, true)).rejects.toThrow('only owner')
  await expect(run(disableAccount, 'nobody@example.com', true)).rejects.toThrow('no account')
})

test('a deleted account keeps none of its links disabled', async () => {
  await using app = await testApp({ env: ENV })
  await setUpOwner(app)
  const { code } = await app.claim('PHISH01', DESTINATION)
  app.administer(({ db, accounts }) => {
    const accountId = accounts.findByEmail('free@example.com')?.id ?? 0
    const { disable, beginDeletion } = operationsOn(db, subject)
    const author = { accountId, by: 'operator', now: app.now() } as const
    disable({ author, links: true })
    beginDeletion({ author })
  })
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir, env: ENV })
  await eventually('the code is free', async () => (await statusOf(again, code)) === 404)
  const claim = await again.call('POST', '/api/reserve', { key: 'pro-2', json: { code } })
  expect(claim.status).toBe(201)
})
