import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseHost } from '../../src/blocklist/stored-hosts.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { messageOf } from '../support/refusals.ts'

/** The page on which the owner of the service blocks hosts. */

const HOSTS = '/app/service/hosts'
const ENV = { ANONYMOUS_READS_PER_MINUTE: '0', REDIRECT_THREADS: '2' }
const REFUSAL = messageOf('url_blocked')

const block = (owner: Visitor, host: string, reason = 'Reported') =>
  owner.post(HOSTS, { host, reason, confirmed: '1' }, { from: HOSTS })
const unblock = (owner: Visitor, host: string) =>
  owner.post(`${HOSTS}/unblock`, { host }, { from: HOSTS })

/** Each request has a new connection, so that all redirect threads are asked. */
async function statusesOf(app: TestApp, code: string): Promise<number[]> {
  const statuses = new Set<number>()
  for (let n = 0; n < 12; n++) {
    const init = { redirect: 'manual', headers: { connection: 'close' } } as const
    statuses.add((await fetch(`${app.url}/${code}`, init)).status)
  }
  return [...statuses]
}

test('a host that the owner blocks stops existing links on all threads at once, refuses new ones, and works again when it is removed', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const below = await app.claim('BELOW001', 'https://login.phish.example:8443/a')
  const same = await app.claim('SAME0001', 'https://phish.example/')
  const other = await app.claim('OTHER001', 'https://notphish.example/')
  const links = [below, same, other].map(({ code }) => code)
  for (const code of links) expect(await statusesOf(app, code)).toEqual([302])
  const done = await block(owner, 'https://PHISH.example./login?x=1')
  expect(done.location).toBe(`${HOSTS}?done=blocked&host=phish.example`)
  expect(await statusesOf(app, below.code)).toEqual([410])
  expect(await statusesOf(app, same.code)).toEqual([410])
  expect(await statusesOf(app, other.code)).toEqual([302])
  const json = { url: 'https://a.phish.example/' }
  const refused = await app.call('POST', '/api/shorten', { key, json })
  expect([refused.status, refused.body.error]).toEqual([422, REFUSAL])
  const { text } = await owner.get(HOSTS)
  expect(text).toContain('phish.example')
  expect(text).toContain('Reported')
  // The reason of a blocked host is corrected, not entered twice.
  await block(owner, 'phish.example', 'Phishing <b>of 3 May</b>')
  const corrected = await owner.get(HOSTS)
  expect(corrected.text).toContain('Phishing &lt;b&gt;of 3 May&lt;/b&gt;')
  expect(corrected.text).not.toContain('Reported')
  expect((await unblock(owner, 'phish.example')).location).toBe(`${HOSTS}?done=unblocked`)
  for (const code of links) expect(await statusesOf(app, code)).toEqual([302])
  expect((await app.call('POST', '/api/shorten', { key, json })).status).toBe(201)
})

test('before a host is blocked, the page says how many links of how many accounts stop, and changes nothing', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const idn = 'https://münchen.phish.example/b'
  await app.claim('BELOW001', 'https://LOGIN.phish.example:8443/a')
  await app.claim('SAME0001', 'https://phish.example/', key)
  await app.claim('IDN00001', idn, key)
  await app.claim('OTHER001', 'https://notphish.example/?to=phish.example', key)
  const asked = await owner.post(HOSTS, { host: 'phish.example', reason: 'Reported' })
  expect([asked.status, asked.location]).toEqual([200, null])
  expect(asked.text).toContain('3 links of 2 accounts')
  for (const [name, value] of [
    ['host', 'phish.example'],
    ['reason', 'Reported'],
    ['confirmed', '1'],
  ]) {
    expect(asked.text).toContain(`name="${name}" value="${value}"`)
  }
  expect(await statusesOf(app, 'SAME0001')).toEqual([302])
  const below = await owner.post(HOSTS, { host: 'münchen.phish.example', reason: 'Reported' })
  expect(below.text).toContain('1 link of 1 account')
  const done = await block(owner, 'phish.example')
  expect((await owner.get(done.location ?? '')).text).toContain('3 links stopped')
  expect(await statusesOf(app, 'IDN00001')).toEqual([410])
  // Nothing more stops: the reason is corrected, and a host without links is blocked, at once.
  for (const host of ['phish.example', 'login.phish.example', 'unused.example']) {
    expect((await owner.post(HOSTS, { host, reason: 'Again' })).status).toBe(303)
  }
})

test('a blocked host is still blocked after a restart, and an exemption of a file does not lift it', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'list.txt')
  writeFileSync(list, '||ads.example^\n@@||phish.example^\n')
  const options = { env: { ...ENV, BLOCKLIST_FILES: list }, dataDir: join(folder.path, 'data') }
  {
    await using app = await testApp(options)
    const { owner } = await setUpOwner(app)
    const { code } = await app.claim('SAME0001', 'https://phish.example/')
    await block(owner, 'phish.example')
    expect(await statusesOf(app, code)).toEqual([410])
  }
  await using again = await testApp(options)
  expect(await statusesOf(again, 'SAME0001')).toEqual([410])
})

test('a destination after expiry on a blocked host is not followed', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const json = { url: 'https://good.example/', expires_at: '2020-01-01T00:00:00Z' }
  const { body } = await app.call('POST', '/api/shorten', { key, json })
  const expired_url = 'https://later.example/'
  await app.call('PATCH', `/api/links/${body.code}`, { key, json: { expired_url } })
  expect(await statusesOf(app, body.code as string)).toEqual([302])
  await block(owner, 'later.example')
  expect(await statusesOf(app, body.code as string)).toEqual([410])
})

const HOST_TEXTS = [
  ['bad.example', 'bad.example'],
  ['  Bad.Example. ', 'bad.example'],
  ['*.bad.example', 'bad.example'],
  ['.bad.example', 'bad.example'],
  ['https://user@bad.example:8080/path?q#f', 'bad.example'],
  ['bad.example/path', 'bad.example'],
  ['münchen.example', 'xn--mnchen-3ya.example'],
  ['192.0.2.7', '192.0.2.7'],
  ['0x7f.1', '127.0.0.1'],
  ['[2001:db8::1]', '[2001:db8::1]'],
  ['[::ffff:192.0.2.7]', '192.0.2.7'],
] as const
test.each(HOST_TEXTS)('the text %p names the host %p', (text, host) => {
  expect(parseHost(text)).toBe(host)
})

test('a link to a blocked host has a badge in the list and on its page until the host is allowed', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  await app.claim('SAME0001', 'https://phish.example/', key)
  await app.claim('OTHER001', 'https://notphish.example/', key)
  const badges = async () => {
    const pages = ['/app/links', '/app/links/SAME0001', '/app/links/OTHER001']
    const texts = await Promise.all(pages.map(async (path) => (await owner.get(path)).text))
    return texts.map((text) => text.split('>Blocked</span>').length - 1)
  }
  expect(await badges()).toEqual([0, 0, 0])
  await block(owner, 'phish.example')
  expect(await badges()).toEqual([1, 1, 0])
  await unblock(owner, 'phish.example')
  expect(await badges()).toEqual([0, 0, 0])
})
