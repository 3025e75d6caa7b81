import { expect, test } from 'bun:test'
import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROUTES as ALL_ROUTES } from '../../src/dashboard/route-list.ts'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { recordBackup } from '../../src/status/last-backup.ts'
import { START, type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'

/** The pages of the service, for its owner: accounts, invitations, maintenance, health. */

const DAY = 24 * HOUR
const ACCOUNTS = '/app/service/accounts'

const linkIn = ({ text }: Seen): string => /value="http:\/\/hop\.test([^"]+)"/.exec(text)?.[1] ?? ''
const statusOf = async (app: TestApp, key: string): Promise<number> =>
  (await app.call('GET', '/api/list', { key })).status

/** The page of an account, as the list of accounts links to it. */
async function pathOf(owner: Visitor, email: string): Promise<string> {
  const { text } = await owner.get(`${ACCOUNTS}?search=${encodeURIComponent(email)}`)
  return new RegExp(`href="(${ACCOUNTS}/\\d+)">${email}<`).exec(text)?.[1] ?? ''
}

const invite = (owner: Visitor, fields: Record<string, string>): Promise<Seen> =>
  owner.post(`${ACCOUNTS}/invites`, fields, { from: ACCOUNTS })

const ROUTES = [
  ['GET', '/app/service'],
  ['POST', '/app/service/maintenance'],
  ['POST', '/app/service/maintenance/end'],
  ['POST', '/app/service/certificate/retry'],
  ['GET', ACCOUNTS],
  ['POST', `${ACCOUNTS}/invites`],
  ['POST', `${ACCOUNTS}/invites/end`],
  ['GET', `${ACCOUNTS}/new`],
  ['POST', `${ACCOUNTS}/new`],
  ['GET', `${ACCOUNTS}/1`],
  ['POST', `${ACCOUNTS}/1/plan`],
  ['POST', `${ACCOUNTS}/1/reset`],
  ['POST', `${ACCOUNTS}/1/remove-member`],
  ['POST', `${ACCOUNTS}/1/invite-member`],
  ['GET', `${ACCOUNTS}/1/links`],
  ['GET', `${ACCOUNTS}/1/disable`],
  ['POST', `${ACCOUNTS}/1/disable`],
  ['POST', `${ACCOUNTS}/1/enable`],
  ['GET', '/app/service/links'],
  ['GET', '/app/service/links/SPRING26'],
  ['POST', '/app/service/links/SPRING26/disable'],
  ['POST', '/app/service/links/SPRING26/enable'],
  ['GET', '/app/service/hosts'],
  ['POST', '/app/service/hosts'],
  ['POST', '/app/service/hosts/unblock'],
  ['GET', '/app/service/domains'],
  ['POST', '/app/service/domains'],
  ['GET', '/app/service/domains/go.example'],
  ['POST', '/app/service/domains/go.example'],
  ['POST', '/app/service/domains/go.example/remove'],
  ['GET', '/app/service/domains/go.example/apps'],
  ['POST', '/app/service/domains/go.example/apps'],
  ['GET', '/app/service/unknown-paths'],
  ['GET', '/app/service/settings'],
] as const

test('for everybody but the owner there is no page of the service, and nothing is changed', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const eve = await makeMember(app, 'eve@example.com')
  const { csrf } = await eve.get('/app/account')
  const everything = { csrf, plan: 'free', length: '2h', email: 'mallory@example.com', invite: '1' }
  const unknown = await eve.get('/app/nothing')
  const plain = (text: string) => text.replace(/<input type="hidden"[^>]+>/g, '')
  for (const [method, path] of ROUTES) {
    const seen = await (method === 'GET' ? eve.get(path) : eve.post(path, everything))
    expect([method, path, seen.status]).toEqual([method, path, 404])
    expect(plain(seen.text)).toBe(plain(unknown.text))
  }
  const anonymous = new Visitor(app)
  for (const [method, path] of ROUTES) {
    const seen = await (method === 'GET' ? anonymous.get(path) : anonymous.post(path, everything))
    expect(seen.location).toStartWith('/app/sign-in')
  }
  expect((await eve.get('/app/account')).text).not.toContain('/app/service')
  expect(await statusOf(app, key)).toBe(200)
  const { text } = await owner.get(ACCOUNTS)
  expect(text).toContain('No pending invitations.')
  expect((await owner.get(`${ACCOUNTS}/1`)).text).toContain('selected>Enterprise')
})

test('that list of pages and forms is whole', () => {
  const found = ALL_ROUTES.filter(({ access }) => access?.role === 'owner').map(
    ({ method, path }) => {
      const at = path.replace(':id', '1').replace(':code', 'SPRING26')
      return `${method} ${at.replace(':host', 'go.example')}`
    },
  )
  expect(found.sort()).toEqual(ROUTES.map((route) => route.join(' ')).sort())
})

test('an invitation makes one account with its plan and address, and then it is used up', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const made = await invite(owner, { email: 'ann@example.com', plan: 'pro' })
  expect(made.status).toBe(200)
  const path = linkIn(made)
  expect(path).toMatch(/^\/app\/join\/[\w-]{43}$/)
  const list = await owner.get(ACCOUNTS)
  expect(list.text).not.toContain(path.split('/').at(-1) ?? '?')
  expect(list.text).toContain('ann@example.com')
  expect(list.text).toContain('data-countdown>7 d 0 h</time>')
  const ann = new Visitor(app)
  const joined = await ann.post(path, { email: 'x@example.com', password: PASSWORD })
  expect(joined.text).toContain('Your account is ready')
  expect((await ann.get('/app/account')).text).toContain('<dd>Pro</dd>')
  const late = new Visitor(app)
  expect((await late.get(path)).status).toBe(404)
  const sent = { email: 'late@example.com', password: PASSWORD }
  expect((await late.post(path, sent, { from: '/app/sign-in' })).status).toBe(404)
  expect((await owner.get(ACCOUNTS)).text).toContain('No pending invitations.')
  expect(await pathOf(owner, 'ann@example.com')).not.toBe('')
  expect(await pathOf(owner, 'late@example.com')).toBe('')
})

test('a withdrawn invitation does not work, nor one of more than 7 days', async () => {
  await using app = await testApp({
    env: { SESSION_IDLE_MINUTES: '10080', SESSION_MAX_HOURS: '2160' },
  })
  const { owner } = await setUpOwner(app)
  const withdrawn = linkIn(await invite(owner, { email: '', plan: 'free' }))
  const { text } = await owner.get(ACCOUNTS)
  const id = /name="invite" value="(\d+)"/.exec(text)?.[1] ?? ''
  const ended = await owner.post(`${ACCOUNTS}/invites/end`, { invite: id }, { from: ACCOUNTS })
  expect(ended.location).toBe(`${ACCOUNTS}?done=withdrawn`)
  const kept = linkIn(await invite(owner, { email: '', plan: 'free' }))
  const guest = new Visitor(app)
  const sent = { email: 'guest@example.com', password: PASSWORD }
  expect((await guest.get(withdrawn)).status).toBe(404)
  expect((await guest.post(withdrawn, sent, { from: '/app/sign-in' })).status).toBe(404)
  expect((await guest.get(kept)).status).toBe(200)
  app.advance(7 * DAY)
  expect((await guest.get(kept)).status).toBe(404)
  expect((await guest.post(kept, sent, { from: '/app/sign-in' })).status).toBe(404)
  expect(await pathOf(owner, 'guest@example.com')).toBe('')
})

test('a disabled account’s key is refused and its sessions end at once; its links go on, and enabling undoes it', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { code } = await app.claim('SPRING', 'https://example.com/spring')
  const member = await makeMember(app, 'free@example.com')
  const key = app.key('free')
  const path = await pathOf(owner, 'free@example.com')
  const asked = await owner.get(`${path}/disable`)
  expect(asked.notices).toEqual(['alert'])
  expect(asked.text).toContain('1 link')
  expect(await statusOf(app, key)).toBe(200)
  expect((await owner.post(`${path}/disable`, {})).location).toBe(`${path}?done=disabled`)
  expect(await statusOf(app, key)).toBe(401)
  expect((await member.get('/app/account')).status).toBe(303)
  expect((await member.signIn('free@example.com')).status).toBe(401)
  expect((await app.call('GET', `/${code}`)).status).toBe(302)
  expect((await owner.get(ACCOUNTS)).text).toContain('<strong>disabled</strong>')
  const reset = await owner.post(`${path}/reset`, {}, { from: path })
  expect([reset.status, linkIn(reset)]).toEqual([303, ''])
  await owner.post(`${path}/enable`, {}, { from: path })
  expect(await statusOf(app, key)).toBe(200)
  expect((await member.signIn('free@example.com')).status).toBe(303)
})

test('a change of plan holds from the next request on', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const limit = async () =>
    (await app.call('GET', '/api/list', { key: 'free' })).headers.get('x-ratelimit-limit')
  expect(await limit()).toBe('300')
  const path = await pathOf(owner, 'free@example.com')
  await owner.post(`${path}/plan`, { plan: 'pro' }, { from: path })
  expect(await limit()).toBe('3000')
  const bad = await owner.post(`${path}/plan`, { plan: 'gold' }, { from: path })
  expect(bad.status).toBe(400)
  expect(await limit()).toBe('3000')
})

test('a reset link is shown once and sets a new password once', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const member = await makeMember(app, 'ann@example.com')
  const path = await pathOf(owner, 'ann@example.com')
  const first = linkIn(await owner.post(`${path}/reset`, {}, { from: path }))
  const second = linkIn(await owner.post(`${path}/reset`, {}, { from: path }))
  expect((await owner.get(path)).text).not.toContain(second)
  expect((await member.get('/app/account')).status).toBe(200)
  expect((await new Visitor(app).get(first)).status).toBe(404)
  const sent = { email: '', password: 'eleven silent bees' }
  expect((await new Visitor(app).post(second, sent)).status).toBe(303)
  expect((await member.get('/app/account')).status).toBe(303)
  expect((await new Visitor(app).get(second)).status).toBe(404)
  expect((await member.signIn('ann@example.com', 'eleven silent bees')).status).toBe(303)
})

test('accounts come in pages of 50, the newest first, and are found by a part of their address', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  for (let i = 0; i < 60; i++) app.key(`free-${i}`)
  const emails = async (query: string) =>
    [
      ...(await owner.get(ACCOUNTS + query)).text.matchAll(/title=[^>]+\/accounts\/\d+">([^<]+)</g),
    ].map(([, email]) => email)
  const [one, two] = [await emails(''), await emails('?page=2')]
  expect([one.length, two.length]).toEqual([50, 11])
  expect(one[0]).toBe('free-59@example.com')
  expect(two.at(-1)).toBe(OWNER)
  expect(new Set([...one, ...two]).size).toBe(61)
  expect(await emails('?search=FREE-3%40')).toEqual(['free-3@example.com'])
  expect(await emails('?search=%25')).toEqual([])
  for (const odd of ['?page=0', '?page=-1', '?page=x', '?page=1.5']) {
    expect(await emails(odd)).toEqual(one)
  }
  expect(await emails('?page=99999999999999999999')).toEqual([])
})

const lengths = [
  { name: '30 minutes', fields: { length: '30m' }, until: START + 30 * MINUTE },
  { name: '2 hours', fields: { length: '2h' }, until: START + 2 * HOUR },
  {
    name: 'a time in UTC',
    fields: { length: 'at', at: '2026-03-01T15:30' },
    until: START + 3.5 * HOUR,
  },
  {
    name: 'a time in the visitor’s zone',
    fields: { length: 'at', at: '2026-03-02T00:30', utc: '2026-03-01T15:30:00.000Z' },
    until: START + 3.5 * HOUR,
  },
]
// spec: Errors | 503 planned maintenance
test.each(lengths)(
  'maintenance begins for $name, the API says until when, and it is ended',
  async ({ fields, until }) => {
    await using app = await testApp()
    const { owner } = await setUpOwner(app)
    const { code } = await app.claim('SPRING', 'https://example.com/spring')
    const sent = fields as Record<string, string>
    const begun = await owner.post('/app/service/maintenance', sent, { from: '/app/service' })
    expect(begun.location).toBe('/app/service?done=on')
    const iso = new Date(until).toISOString()
    const { status, body } = await app.call('GET', `/api/lookup/${code}`)
    expect([status, body.error]).toEqual([503, `Service under maintenance until ${iso}`])
    expect((await app.call('GET', `/${code}`)).status).toBe(302)
    expect((await owner.get('/app/service')).text).toContain(`datetime="${iso}"`)
    await owner.post('/app/service/maintenance/end', {}, { from: '/app/service' })
    expect((await app.call('GET', `/api/lookup/${code}`)).status).toBe(200)
    const events = app.log
      .map((line) => JSON.parse(line) as { event: string; until?: string })
      .filter(({ event }) => event.startsWith('maintenance.'))
    expect(events).toMatchObject([
      { event: 'maintenance.on', until: iso },
      { event: 'maintenance.off' },
    ])
  },
)

test('a length that the form does not offer neither begins nor ends maintenance', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const begin = (length: string) =>
    owner.post('/app/service/maintenance', { length }, { from: '/app/service' })
  await begin('2h')
  expect((await begin('constructor')).status).toBe(422)
  expect((await app.call('GET', '/api/status')).status).toBe(503)
})

test('the page says how the service is, and a blocklist file that fails', async () => {
  using folder = temporaryFolder()
  const good = join(folder.path, 'good.txt')
  writeFileSync(good, 'bad.example\nworse.example\n')
  const missing = join(folder.path, 'missing.txt')
  await using app = await testApp({ env: { BLOCKLIST_FILES: `${good},${missing}` } })
  const { owner } = await setUpOwner(app)
  const hosts = await owner.get('/app/service/hosts')
  expect(hosts.text).toContain('2 blocked hosts')
  expect(hosts.notices).toEqual(['alert'])
  const { text, notices } = await owner.get('/app/service')
  expect(notices).toEqual(['alert'])
  expect(text).toContain('<dt>State</dt><dd>healthy</dd>')
  const part = await owner.get('/app/service', { 'hx-request': 'true' })
  expect(part.text).not.toMatch(/<html|<form/)
  expect(part.text).toContain('Journal filled')
})

test('the page shows the age of the last backup, and the active settings without secrets', async () => {
  await using app = await testApp({ env: { HOPCODE_API_KEY: 'hop_s3cret', LINK_CACHE_MAX: '777' } })
  const { owner } = await setUpOwner(app)
  expect((await owner.get('/app/service')).text).toContain('<strong>None yet</strong>')
  const { text } = await owner.get('/app/service/settings')
  expect(text).toMatch(/<code>LINK_CACHE_MAX<\/code>[\s\S]*?777/)
  expect(text).toMatch(/<code>SIGNUPS_PER_DAY<\/code>[\s\S]*?500/)
  expect(text).toContain('set, not shown')
  expect(text).not.toContain('s3cret')
  recordBackup(app.dataDir)
  utimesSync(join(app.dataDir, 'last-backup'), 0, (START - 3 * 60 * 60 * 1000) / 1000)
  expect((await owner.get('/app/service')).text).toContain('<strong>3 h 0 min ago</strong>')
  recordBackup(app.dataDir)
  expect((await owner.get('/app/service')).text).toContain('<strong>0 s ago</strong>')
})
