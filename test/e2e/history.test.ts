import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { addDomain, removeDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { databaseFile } from '../../src/db/open.ts'
import { disableLink } from '../support/administration.ts'
import { type Body, eventually, type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { addKey, inviteTo, makeMember } from '../support/members.ts'

/** What was changed about links, by whom. */

const A = 'https://example.com/a'
const B = 'https://example.com/b'
const FREE = 'free@example.com'
const PRO = 'pro@example.com'
const ACTIVITY = '/app/account/activity'

interface Event extends Body {
  kind: string
  actor: { kind: string; name: string | null }
  links: number
}

/** Newest first. */
async function historyOf(app: TestApp, code: string, key = 'free', query = 'limit=100') {
  const { status, body } = await app.call('GET', `/api/links/${code}/history?${query}`, { key })
  return { status, items: (body.items ?? []) as Event[], next: body.next as string | null }
}
const kindsOf = async (app: TestApp, code: string, key = 'free') =>
  (await historyOf(app, code, key)).items.map(({ kind }) => kind)

const update = (
  app: TestApp,
  link: { code: string; passcode: string },
  url: string,
  key = 'free',
) => app.call('POST', '/api/update', { key, json: { ...link, url } })
const patch = (app: TestApp, code: string, json: object, key = 'free') =>
  app.call('PATCH', `/api/links/${code}`, { key, json })
const saveUrl = (by: Visitor, code: string, url: string) =>
  by.post(`/app/links/${code}/settings`, { url })
/** The account that a person has opened last. */
const accountOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.accountId ?? 0)

test('an update by passcode names the key, and what was there before', async () => {
  await using app = await testApp()
  app.key('free')
  const key = addKey(app, FREE, { name: 'Till', scope: 'write' })
  const link = await app.shorten(A)
  app.advance(60_000)
  expect((await update(app, link, B, key)).status).toBe(200)
  const { items, next } = await historyOf(app, link.code)
  const actor = { kind: 'key', name: 'Till' }
  expect(next).toBeNull()
  expect(items).toEqual([
    { at: '2026-03-01T12:01:00.000Z', kind: 'destination', actor, before: A, after: B, links: 1 },
    {
      at: '2026-03-01T12:00:00.000Z',
      kind: 'created',
      actor: { kind: 'key', name: 'Default' },
      before: null,
      after: A,
      links: 1,
    },
  ])
  const manager = addKey(app, FREE, { name: 'Manager', scope: 'manage' })
  expect((await patch(app, link.code, { url: A, paused: true }, manager)).status).toBe(200)
  expect((await historyOf(app, link.code)).items.slice(0, 2)).toMatchObject([
    { kind: 'state', actor: { name: 'Manager' } },
    { kind: 'destination', actor: { name: 'Manager' }, before: B, after: A },
  ])
  await update(app, link, B, key)
  // The same again changes nothing.
  expect((await update(app, link, B, key)).status).toBe(200)
  expect((await kindsOf(app, link.code)).slice(0, 2)).toEqual(['destination', 'state'])
})

test('each change of properties and aliases has its kind, with the values that changed', async () => {
  await using app = await testApp({ env: { ALIASES: 'all', DESTINATIONS: 'all' } })
  const { code } = await app.shorten(A, 'pro')
  const destinations = [{ when: { os: ['ios'] }, url: B }]
  await addDomain(app.administration, operatorOf(app.administration), {
    host: 'go.example',
    codes: 'own',
    for: 'all',
  })
  const changes = [
    { paused: true, expires_at: '2026-04-01T00:00:00.000Z', title: 'Not in the history' },
    { max_hits: 5, paused: true },
    { destinations },
    { aliases: ['menu'] },
    { aliases: ['card'] },
    { domain: 'go.example' },
    { password: 'green herons' },
    { title: 'Again', note: 'n', tags: ['t'] },
  ]
  for (const change of changes) expect((await patch(app, code, change, 'pro')).status).toBe(200)
  const { items } = await historyOf(app, code, 'pro')
  expect(items.map(({ kind, before, after }) => [kind, before, after])).toEqual([
    ['password', null, null],
    ['domain', null, 'go.example'],
    ['aliases', ['menu'], ['card']],
    ['aliases', [], ['menu']],
    ['destinations', [], [expect.objectContaining({ url: B })]],
    ['state', { max_hits: null }, { max_hits: 5 }],
    [
      'state',
      { paused: false, expires_at: null },
      { paused: true, expires_at: '2026-04-01T00:00:00.000Z' },
    ],
    ['created', null, A],
  ])
  const operator = operatorOf(app.administration)
  await removeDomain(app.administration, operator, { host: 'go.example', movesLinks: true })
  expect((await historyOf(app, code, 'pro')).items[0]).toMatchObject({
    kind: 'domain',
    actor: { kind: 'command_line', name: null },
    before: 'go.example',
    after: null,
  })
})

test('the dashboard names the person, also after they were removed', async () => {
  await using app = await testApp()
  const free = await makeMember(app, FREE)
  const ann = await makeMember(app, 'ann@example.com')
  await ann.post(await inviteTo(free, 'ann@example.com', 'editor'), {})
  const { code } = await app.shorten(A)
  expect((await saveUrl(ann, code, B)).status).toBe(303)
  const { id } = app.administer(({ accounts }) => accounts.findByEmail('ann@example.com')) ?? {}
  const member = `/app/account/members/${id}/remove`
  await free.post(member, { current: 'seven purple otters' })
  expect((await ann.get(`/app/links/${code}/history`)).status).not.toBe(200)
  const [event] = (await historyOf(app, code)).items
  expect(event).toMatchObject({ kind: 'destination', before: A, after: B })
  expect(event?.actor).toEqual({ kind: 'person', name: 'ann@example.com' })
  expect((await free.get(`/app/links/${code}/history`)).text).toContain('ann@example.com')
})

test('a password leaves nothing but that it was changed', async () => {
  await using app = await testApp()
  const { code } = await app.shorten(A)
  const password = 'nine green herons'
  for (const change of [{ password }, { password: `${password}!` }, { password: null }]) {
    expect((await patch(app, code, change)).status).toBe(200)
  }
  const { items } = await historyOf(app, code)
  expect(items.map(({ kind, before, after }) => [kind, before, after])).toEqual([
    ['password', null, null],
    ['password', null, null],
    ['password', null, null],
    ['created', null, A],
  ])
  const stored = app.administer(({ db }) =>
    JSON.stringify(db.query('SELECT * FROM link_events').all()),
  )
  expect(stored).not.toMatch(/argon2|green herons/)
  await app.stop()
  expect(readFileSync(databaseFile(app.dataDir)).includes(password)).toBe(false)
})

test('a deletion and its undoing are events, of the person who asked', async () => {
  await using app = await testApp()
  const free = await makeMember(app, FREE)
  const { code } = await app.shorten(A)
  const path = `/app/links/${code}`
  await free.post(`${path}/delete`, {}, { from: path })
  await free.post(`${path}/undo-delete`, {}, { from: path })
  // Nothing is undone a second time.
  await free.post(`${path}/undo-delete`, {}, { from: path })
  const { items } = await historyOf(app, code)
  expect(items.map(({ kind, actor }) => [kind, actor.kind])).toEqual([
    ['restored', 'person'],
    ['deleted', 'person'],
    ['created', 'key'],
  ])
  await free.post(`${path}/delete`, {}, { from: path })
  // Shortened again, which keeps it.
  expect((await app.shorten(A)).code).toBe(code)
  expect((await kindsOf(app, code)).slice(0, 2)).toEqual(['restored', 'deleted'])
})

test('a deleted and claimed code shows nothing old; the activity has its code only', async () => {
  await using app = await testApp()
  const free = await makeMember(app, FREE)
  const first = await app.claim('SPRING26', A)
  await update(app, first, B)
  await patch(app, 'SPRING26', { aliases: [], paused: true })
  await app.call('POST', '/api/delete', { key: 'free', json: first })
  const path = '/app/links/SUMMER26'
  await app.claim('SUMMER26', A)
  await free.post(`${path}/delete`, {}, { from: path })
  app.advance(30_000)
  await eventually('the code is free', async () => {
    return (await app.call('GET', '/api/lookup/SUMMER26')).status === 404
  })
  for (const code of ['SPRING26', 'SUMMER26']) {
    expect((await historyOf(app, code)).status).toBe(404)
    expect((await app.call('POST', '/api/reserve', { key: 'pro', json: { code } })).status).toBe(
      201,
    )
    expect(await kindsOf(app, code, 'pro')).toEqual(['created'])
    expect((await historyOf(app, code)).status).toBe(404)
  }
  const { text } = await free.get(ACTIVITY)
  expect(text).toContain('deleted SPRING26')
  expect(text).toContain('deleted SUMMER26')
  for (const gone of ['example.com/a', 'example.com/b', '/app/links/S', 'created']) {
    expect(text).not.toContain(gone)
  }
  const rows = app.administer(({ db }) =>
    JSON.stringify(db.query('SELECT * FROM link_events').all()),
  )
  expect(rows).not.toContain('example.com/')
})

test('a moved link takes its history along, and the former account sees none', async () => {
  await using app = await testApp()
  const pro = await makeMember(app, PRO)
  const enterprise = await makeMember(app, 'enterprise@example.com')
  const from = accountOf(app, PRO)
  const to = accountOf(app, 'enterprise@example.com')
  await pro.post(await inviteTo(enterprise, PRO), {})
  await pro.post('/app/account/open', { account: String(from) }, { from: '/app/links' })
  const link = await app.shorten(A, 'pro')
  await update(app, link, B, 'pro')
  const bulk = { urls: [`${A}/1`, `${A}/2`] }
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'pro', json: bulk })
  const [{ code: inBulk } = { code: '' }] = body.results as { code: string }[]
  const at = `codes=${link.code},${inBulk}`
  const move = '/app/links/move'
  const moved = await pro.post(move, { account: String(to), at }, { from: `${move}?${at}` })
  expect(moved.status).toBe(303)
  expect(await kindsOf(app, link.code, 'enterprise')).toEqual(['moved', 'destination', 'created'])
  const { items } = await historyOf(app, inBulk, 'enterprise')
  expect(items.map(({ kind, links }) => [kind, links])).toEqual([
    ['moved', 2],
    ['created', 2],
  ])
  expect(items[0]).toMatchObject({ before: PRO, after: 'enterprise@example.com' })
  for (const code of [link.code, inBulk]) {
    expect((await historyOf(app, code, 'pro')).status).toBe(404)
  }
  const { text } = await pro.get(ACTIVITY)
  for (const gone of [link.code, inBulk, A, B]) expect(text).not.toContain(gone)
  expect((await enterprise.get(ACTIVITY)).text).toContain(link.code)
  expect(problemsOf(app)).toEqual([])
})

test('a batch is one event, found from each of its links', async () => {
  await using app = await testApp()
  const free = await makeMember(app, FREE)
  const json = { urls: [A, B, `${A}/2`, A, 'no url'] }
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'pro', json })
  const results = body.results as { ok: boolean; code: string }[]
  for (const { ok, code } of results) {
    if (!ok) continue
    const { items } = await historyOf(app, code, 'pro')
    expect(items).toMatchObject([{ kind: 'created', before: null, after: null, links: 3 }])
  }
  const single = await app.call('POST', '/api/bulk-shorten', {
    key: 'pro',
    json: { urls: [`${B}/9`] },
  })
  const [one] = single.body.results as { code: string }[]
  expect((await historyOf(app, one?.code ?? '', 'pro')).items).toMatchObject([
    { kind: 'created', after: `${B}/9`, links: 1 },
  ])

  const codes = ['SPRING26', 'SUMMER26', 'AUTUMN26']
  for (const code of codes) await app.claim(code, `${A}/${code}`)
  await patch(app, 'AUTUMN26', { paused: true })
  await free.post(
    '/app/links/batch',
    { code: codes, action: 'pause', at: '' },
    { from: '/app/links' },
  )
  await free.post(
    '/app/links/batch',
    { code: codes, action: 'delete', at: '' },
    { from: '/app/links' },
  )
  const latest = async (code: string) => (await historyOf(app, code)).items.slice(0, 2)
  for (const code of ['SPRING26', 'SUMMER26']) {
    expect(await latest(code)).toMatchObject([
      { kind: 'deleted', before: null, links: 3 },
      { kind: 'state', before: null, after: { paused: true }, links: 2 },
    ])
  }
  expect(await latest('AUTUMN26')).toMatchObject([{ links: 3 }, { kind: 'state', links: 1 }])
})

test('an import is one event, also one of several calls of the writer', async () => {
  await using app = await testApp()
  const lines = Array.from({ length: 1500 }, (_, n) => JSON.stringify({ url: `${A}/${n}` }))
  const { body } = await app.call('POST', '/api/import', {
    key: 'enterprise',
    raw: lines.join('\n'),
    headers: { 'content-type': 'application/x-ndjson' },
  })
  expect(body.links).toBe(1500)
  const results = body.results as { code: string }[]
  for (const at of [0, 999, 1000, 1499]) {
    const { items } = await historyOf(app, results[at]?.code ?? '', 'enterprise')
    expect(items).toMatchObject([{ kind: 'created', after: { imported: true }, links: 1500 }])
  }
})

test('what the owner of the service does has its reason, and no name', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { code } = await app.shorten(A)
  const path = `/app/service/links/${code}`
  await owner.post(`${path}/disable`, { reason: 'Phishing' }, { from: path })
  await owner.post(`${path}/enable`, {}, { from: path })
  await disableLink(app, code, 'Again')
  const { items } = await historyOf(app, code)
  expect(items.slice(0, 3).map(({ kind, actor, after }) => [kind, actor, after])).toEqual([
    ['disabled', { kind: 'command_line', name: null }, 'Again'],
    ['enabled', { kind: 'owner', name: null }, null],
    ['disabled', { kind: 'owner', name: null }, 'Phishing'],
  ])
})

test('a history has pages, which a read key may read', async () => {
  await using app = await testApp()
  app.key('free')
  const key = addKey(app, FREE, { name: 'Reader', scope: 'read' })
  const link = await app.shorten(A)
  for (let n = 0; n < 5; n++) await update(app, link, `${B}/${n}`)
  const seen: unknown[] = []
  let before = ''
  for (let page = 0; page < 3; page++) {
    const { status, items, next } = await historyOf(app, link.code, key, `limit=2${before}`)
    expect(status).toBe(200)
    seen.push(...items.map(({ after }) => after))
    before = `&before=${next}`
  }
  expect(before).toBe('&before=null')
  expect(seen).toEqual([4, 3, 2, 1, 0].map((n) => `${B}/${n}` as string).concat(A))
  for (const query of ['limit=0', 'limit=101', 'before=x', 'before=0', 'offset=1']) {
    expect((await historyOf(app, link.code, key, query)).status).toBe(400)
  }
  for (const other of ['pro', 'hop_wrong']) {
    expect((await historyOf(app, link.code, other)).status).not.toBe(200)
  }
})

test('the page of a link puts a former destination back, and a viewer only reads', async () => {
  await using app = await testApp()
  const free = await makeMember(app, FREE)
  const viewer = await makeMember(app, 'viewer@example.com')
  await viewer.post(await inviteTo(free, 'viewer@example.com', 'viewer'), {})
  const link = await app.shorten(A)
  await update(app, link, B)
  const path = `/app/links/${link.code}/history`
  const seen = await viewer.get(path)
  expect(seen.status).toBe(200)
  expect(seen.text).not.toContain(`action="${path}"`)
  expect((await viewer.post(path, { url: A }, { from: '/app/links' })).status).toBe(403)
  expect((await viewer.get(ACTIVITY)).status).toBe(403)

  expect((await free.get(path)).text).toContain(`action="${path}"`)
  const done = await free.post(path, { url: A })
  expect(done.location).toBe(`${path}?done=put-back`)
  expect((await free.get(done.location ?? '')).notices).toEqual(['status'])
  expect((await app.call('GET', `/${link.code}`)).headers.get('location')).toBe(A)
  const [event] = (await historyOf(app, link.code)).items
  expect(event).toMatchObject({ kind: 'destination', before: B, after: A })
  expect(event?.actor).toEqual({ kind: 'person', name: FREE })
})

test('an export ends with the history, and an import of it skips these lines', async () => {
  await using app = await testApp()
  const link = await app.shorten(A)
  await update(app, link, B)
  await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls: [`${A}/1`, `${A}/2`] } })
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  const lines = text.trimEnd().split('\n')
  const events = lines.map((line) => JSON.parse(line).event as Event | undefined).filter(Boolean)
  expect(events).toMatchObject([
    { kind: 'created', codes: [link.code], after: A },
    { kind: 'destination', codes: [link.code], before: A, after: B },
    { kind: 'created', links: 2 },
  ])
  expect(lines).toHaveLength(1 + 3 + 3)
  const headers = { 'content-type': 'application/x-ndjson' }
  const { body } = await app.call('POST', '/api/import', { key: 'free', raw: text, headers })
  expect((body.results as Body[]).map(({ outcome }) => outcome)).toEqual([
    'left_out',
    ...Array(3).fill('exists'),
    ...Array(3).fill('left_out'),
  ])
  const { text: csv } = await app.call('GET', '/api/export?format=csv', { key: 'free' })
  expect(csv).not.toContain('hopcode_export')
})
