import { expect, test } from 'bun:test'
import type { Role } from '../../src/accounts/store.ts'
import type { DashboardDeps } from '../../src/dashboard/deps.ts'
import { dashboardRoutes } from '../../src/dashboard/routes.ts'
import { REFUSALS } from '../../src/errors.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { inviteTo, makeMember } from '../support/members.ts'

/** Who may open which page and send which form. */

/** Before a sign-in, or for everybody. */
const PUBLIC =
  /^\w+ \/(-\/|favicon|robots|$)|^\w+ \/app(\/(assets|join|reset|setup|shared|sign-(in|up))\b|$)/
/** For owners of the service only: `dashboard-service` has the table of these. */
const OF_SERVICE = /^\w+ \/app\/service\b/

/** The role that is needed at least. A route without a line fails the test. */
const LEAST: Readonly<Record<string, Role>> = {
  'GET /app/account': 'viewer',
  'GET /app/account/activity': 'admin',
  'GET /app/account/delete': 'admin',
  'POST /app/account/delete': 'admin',
  'POST /app/account/domain': 'admin',
  'GET /app/account/domains': 'admin',
  'GET /app/account/members': 'viewer',
  // Oneself: see the test below for others.
  'GET /app/account/members/:id/remove': 'viewer',
  'POST /app/account/members/:id/remove': 'viewer',
  'POST /app/account/members/:id/role': 'admin',
  'POST /app/account/members/invite': 'admin',
  'POST /app/account/members/withdraw': 'admin',
  'POST /app/account/security/identities/:id/disconnect': 'viewer',
  'POST /app/account/security/identities/connect': 'viewer',
  'POST /app/account/name': 'admin',
  'POST /app/account/open': 'viewer',
  'POST /app/account/security/password': 'viewer',
  'GET /app/account/security': 'viewer',
  'POST /app/account/sessions/end': 'viewer',
  'POST /app/account/sessions/end-others': 'viewer',
  'POST /app/account/time-zone': 'admin',
  'GET /app/account/two-factor': 'viewer',
  'POST /app/account/two-factor/begin': 'viewer',
  'POST /app/account/two-factor/confirm': 'viewer',
  'POST /app/account/two-factor/disable': 'viewer',
  'GET /app/account/webhooks': 'admin',
  'GET /app/account/webhooks/delete': 'admin',
  'POST /app/account/webhooks/delete': 'admin',
  'POST /app/account/webhooks/new': 'admin',
  'POST /app/account/webhooks/rotate': 'admin',
  'POST /app/account/webhooks/switch': 'admin',
  'POST /app/account/webhooks/test': 'admin',
  'GET /app/analytics': 'viewer',
  'GET /app/analytics.csv': 'viewer',
  'GET /app/analytics/:code': 'viewer',
  'GET /app/analytics/campaigns': 'viewer',
  'GET /app/analytics/campaigns.csv': 'viewer',
  'GET /app/analytics/visits': 'viewer',
  'GET /app/analytics/visits.csv': 'viewer',
  'GET /app/go': 'viewer',
  'GET /app/keys': 'admin',
  'GET /app/keys/end': 'admin',
  'POST /app/keys/end': 'admin',
  'POST /app/keys/new': 'admin',
  'GET /app/keys/revoke': 'admin',
  'POST /app/keys/revoke': 'admin',
  'POST /app/keys/rotate': 'admin',
  'GET /app/campaigns': 'editor',
  'POST /app/campaigns': 'editor',
  'POST /app/campaigns/delete': 'editor',
  'POST /app/campaigns/fields': 'editor',
  'GET /app/links': 'viewer',
  'POST /app/links': 'editor',
  'GET /app/links/:code': 'viewer',
  'GET /app/links/:code/delete': 'editor',
  'POST /app/links/:code/delete': 'editor',
  'GET /app/links/:code/destinations': 'viewer',
  'POST /app/links/:code/destinations': 'editor',
  'GET /app/links/:code/history': 'viewer',
  'POST /app/links/:code/history': 'editor',
  'GET /app/links/:code/hits.csv': 'viewer',
  'POST /app/links/:code/pause': 'editor',
  'GET /app/links/:code/qr': 'viewer',
  'GET /app/links/:code/qr.pdf': 'viewer',
  'GET /app/links/:code/qr.png': 'viewer',
  'GET /app/links/:code/qr.svg': 'viewer',
  'GET /app/links/:code/settings': 'editor',
  'POST /app/links/:code/settings': 'editor',
  'POST /app/links/:code/undo-delete': 'editor',
  'GET /app/links/:code/visits': 'viewer',
  'GET /app/links/:code/visits.csv': 'viewer',
  // Each action below.
  'POST /app/links/batch': 'viewer',
  'GET /app/links/bulk': 'editor',
  'POST /app/links/bulk': 'editor',
  'GET /app/links/code': 'viewer',
  'GET /app/links/hits': 'viewer',
  'GET /app/links/export.csv': 'viewer',
  'GET /app/links/move': 'admin',
  'POST /app/links/move': 'admin',
  'GET /app/links/import': 'editor',
  'POST /app/links/import': 'editor',
  'POST /app/links/import/domains': 'editor',
  'GET /app/links/import/export/:format': 'editor',
  'GET /app/links/import/report.csv': 'editor',
  'POST /app/links/import/start': 'editor',
  'POST /app/links/undo': 'editor',
  'GET /app/print': 'viewer',
  'GET /app/print/codes.zip': 'viewer',
  'GET /app/print/formats': 'editor',
  'POST /app/print/formats': 'editor',
  'POST /app/print/formats/delete': 'editor',
  'GET /app/print/keep': 'viewer',
  'GET /app/print/labels.pdf': 'viewer',
  'GET /app/print/page.svg': 'viewer',
  'GET /app/qr': 'editor',
  'POST /app/qr/logo': 'editor',
  'GET /app/qr/logo.png': 'viewer',
  'GET /app/qr/preview.svg': 'editor',
  'POST /app/qr/logo/remove': 'editor',
  'POST /app/qr/presets': 'editor',
  'POST /app/qr/presets/delete': 'editor',
  'POST /app/sign-out': 'viewer',
  'POST /app/theme': 'viewer',
}

const ROLES = ['viewer', 'editor', 'admin'] as const
const isBelow = (role: Role, least: Role) => ROLES.indexOf(role) < ROLES.indexOf(least)

/** Ann’s account with a link, and a member of it for each role. */
async function team(app: TestApp) {
  const ann = await makeMember(app, 'ann@example.com')
  await ann.post('/app/links', { url: 'https://example.com/a', code: 'SPRING26' })
  const members = { viewer: new Visitor(app), editor: new Visitor(app), admin: new Visitor(app) }
  for (const role of ROLES) {
    const path = await inviteTo(ann, `${role}@example.com`, role)
    expect((await members[role].post(path, { password: PASSWORD })).status).toBe(303)
  }
  return { ann, members }
}

const isRefused = ({ status, text }: Seen): boolean =>
  status === 403 && ROLES.some((role) => text.includes(REFUSALS.role_needed.message(role)))

const pathOf = (route: string): string =>
  route
    .replace(/^\w+ /, '')
    .replace(':code', 'SPRING26')
    .replace(':id', '999')
    .replace(':format', 'jsonl')

const use = (
  visitor: Visitor,
  route: string,
  fields: Record<string, string> = {},
): Promise<Seen> =>
  route.startsWith('GET ')
    ? visitor.get(pathOf(route))
    : visitor.post(pathOf(route), fields, { from: '/app/links' })

const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

/** The rows of what an account owns. */
const stored = (app: TestApp): string =>
  app.administer(({ db }) => {
    const rowsOf = (table: string) => db.query(`SELECT * FROM ${table} ORDER BY 1, 2`).all()
    const tables = ['links', 'aliases', 'api_keys', 'qr_presets', 'accounts', 'memberships']

    return JSON.stringify(tables.map(rowsOf), (_, value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    )
  })

test('the table of routes and roles is whole', () => {
  // Routes are known before anything that they work with.
  const routes = dashboardRoutes({} as DashboardDeps).routes.map(
    ({ method, path }) => `${method} ${path}`,
  )
  const others = routes.filter((route) => !PUBLIC.test(route) && !OF_SERVICE.test(route))
  expect(others.sort()).toEqual(Object.keys(LEAST).sort())
})

test('the path of a form that was refused, opened again, leads to the page of the form', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  await owner.post('/app/links', { url: 'https://example.com/a', code: 'SPRING26' })
  await owner.post('/app/service/domains', { host: 'go.example' })
  const routes = dashboardRoutes({} as DashboardDeps).routes
  const pages = routes.filter(({ method }) => method === 'GET').map(({ path }) => path)
  const forms = routes.filter(({ method, path }) => method === 'POST' && !pages.includes(path))
  expect(forms.length).toBeGreaterThan(40)
  const exact: Record<string, string> = {
    '/app/account/members/invite': '/app/account/members',
    '/app/account/members/999/role': '/app/account/members',
    '/app/keys/rotate': '/app/keys',
    '/app/links/batch': '/app/links',
    '/app/links/SPRING26/pause': '/app/links/SPRING26',
    '/app/service/accounts/invites/end': '/app/service/accounts',
  }
  for (const { path } of forms) {
    const at = pathOf(`POST ${path}`).replace('999', path.includes('/service/') ? '1' : '999')
    const address = at.replace(':host', 'go.example')
    const { status, location } = await owner.get(address)
    expect([address, status]).toEqual([address, 303])
    expect([address, location]).toEqual([address, exact[address] ?? expect.any(String)])
    const page = await owner.get(location ?? '')
    // `/app` itself leads to the links.
    const isFound = page.status === 200 || (location === '/app' && page.location === '/app/links')
    expect([address, location, isFound]).toEqual([address, location, true])
  }
})

test.each(ROLES)('%s: every page and form answers or is refused by the role', async (role) => {
  await using app = await testApp()
  const { members } = await team(app)
  const member = members[role]
  const before = stored(app)
  for (const [route, least] of Object.entries(LEAST)) {
    // Without its fields each form is refused after the role was checked.
    if (route === 'POST /app/sign-out') continue
    const seen = await use(member, route)
    expect([route, isRefused(seen)]).toEqual([route, isBelow(role, least)])
  }
  if (role === 'viewer') expect(stored(app)).toBe(before)
  expect((await use(member, 'POST /app/sign-out')).location).toContain('/app/sign-in')
})

test('nobody opens a page or sends a form without a session', async () => {
  await using app = await testApp()
  await team(app)
  const before = stored(app)
  for (const route of Object.keys(LEAST)) {
    const seen = await use(new Visitor(app), route)
    expect([route, seen.location?.split('?')[0]]).toEqual([route, '/app/sign-in'])
  }
  expect(stored(app)).toBe(before)
})

test('a form from another site, or without the token of its page, is refused', async () => {
  await using app = await testApp()
  const { ann } = await team(app)
  const before = stored(app)
  const { csrf } = await ann.get('/app/links')
  const fields = { url: 'https://evil.example/', paused: '1', name: 'Evil', current: PASSWORD }
  for (const route of Object.keys(LEAST).filter((one) => one.startsWith('POST '))) {
    const elsewhere = { headers: { 'sec-fetch-site': 'cross-site' } }
    const seen = [
      await ann.post(pathOf(route), { ...fields, csrf }, elsewhere),
      await ann.post(pathOf(route), { ...fields, csrf: 'A'.repeat(86) }),
    ]
    expect([route, ...seen.map(({ status }) => status)]).toEqual([route, 403, 403])
    for (const { text } of seen) expect(text).toContain(REFUSALS.form_expired.message())
  }
  expect(stored(app)).toBe(before)
})

test('a link of another account, an unknown one and nonsense are one and the same 404', async () => {
  await using app = await testApp()
  await team(app)
  const eve = await makeMember(app, 'eve@example.com')
  const before = stored(app)
  const { csrf } = await eve.get('/app/links')
  const fields = { url: 'https://example.com/eve', password: 'x', add: 'x', paused: '1', csrf }
  const see = async (route: string, code: string) => {
    const path = pathOf(route).replace('SPRING26', code)
    const seen = await (route.startsWith('GET ') ? eve.get(path) : eve.post(path, fields))
    const text = seen.text.replaceAll(code.toUpperCase(), 'CODE').replace(/<code>[^<]*/g, '')
    return [route, seen.status, text.replace(/name="(csrf|next)" value="[^"]*"/g, '')]
  }
  for (const route of Object.keys(LEAST).filter((one) => one.includes(':code'))) {
    const foreign = await see(route, 'SPRING26')
    expect(foreign.slice(0, 2)).toEqual([route, 404])
    for (const code of ['UNKNOWN1', 'x-y']) expect(await see(route, code)).toEqual(foreign)
  }
  expect(stored(app)).toBe(before)
})

test('a viewer’s selection can be read, and changes nothing', async () => {
  await using app = await testApp()
  const { members } = await team(app)
  const before = stored(app)
  for (const all of [{}, { all: '1' }]) {
    for (const action of ['tag', 'untag', 'pause', 'resume', 'delete', 'constructor', '']) {
      const fields = { action, code: 'SPRING26', tag: 'x', ...all }
      const seen = await use(members.viewer, 'POST /app/links/batch', fields)
      const isUnknown = action === 'delete' && 'all' in all
      expect([action, isRefused(seen) || (isUnknown && seen.status === 422)]).toEqual([
        action,
        true,
      ])
    }
  }
  expect(stored(app)).toBe(before)
  for (const action of ['analytics', 'print', 'export', 'qr']) {
    const fields = { action, code: 'SPRING26' }
    const { status } = await use(members.viewer, 'POST /app/links/batch', fields)
    expect([action, status]).toEqual([action, action === 'export' || action === 'qr' ? 200 : 303])
  }
})

test('a viewer’s download of a QR code with a source stores no source', async () => {
  await using app = await testApp()
  const { members } = await team(app)
  const refs = () => app.administer(({ db }) => db.query('SELECT * FROM qr_refs').all().length)
  const path = '/app/links/SPRING26/qr.svg?ref=poster'
  expect((await members.viewer.get(path)).status).toBe(200)
  expect(refs()).toBe(0)
  expect((await members.editor.get(path)).status).toBe(200)
  expect(refs()).toBe(1)
})

test('a changed role applies to the next request, and to pages that are open', async () => {
  await using app = await testApp()
  const { ann, members } = await team(app)
  const { csrf } = await members.editor.get('/app/links')
  const to = `/app/account/members/${idOf(app, 'editor@example.com')}/role`
  const changed = await ann.post(to, { role: 'viewer' }, { from: '/app/account/members' })
  expect(changed.location).toBe('/app/account/members?done=role')
  const stale = await members.editor.post('/app/links', { url: 'https://example.com/x', csrf })
  expect(isRefused(stale)).toBe(true)
  await ann.post(to, { role: 'admin' }, { from: '/app/account/members' })
  expect((await members.editor.get('/app/keys')).status).toBe(200)
})

test('a viewer may leave', async () => {
  await using app = await testApp()
  const { members } = await team(app)
  const path = `/app/account/members/${idOf(app, 'viewer@example.com')}/remove`
  expect((await members.viewer.post(path, {})).location).toBe('/app')
  expect(idOf(app, 'viewer@example.com')).toBe(0)
})

test('the last admin stays one, also when two admins lower each other at once', async () => {
  await using app = await testApp()
  const { ann, members } = await team(app)
  const idOfAnn = idOf(app, 'ann@example.com')
  const idOfAdmin = idOf(app, 'admin@example.com')
  const lower = (by: Visitor, id: number) =>
    by.post(`/app/account/members/${id}/role`, { role: 'viewer' }, { from: '/app/account/members' })
  await Promise.all([lower(ann, idOfAdmin), lower(members.admin, idOfAnn)])
  const admins = () =>
    app.administer(({ accounts }) =>
      accounts.listMembers(idOfAnn).filter(({ role }) => role === 'admin'),
    )
  expect(admins().length).toBe(1)
  const [last] = admins()
  const by = last?.id === idOfAnn ? ann : members.admin
  const seen = await lower(by, last?.id ?? 0)
  expect([seen.status, admins().length]).toEqual([422, 1])
  const leaves = await by.post(`/app/account/members/${last?.id}/remove`, {})
  expect([leaves.status, admins().length]).toEqual([422, 1])
})

test('the invitations of a former admin end', async () => {
  await using app = await testApp()
  const { ann, members } = await team(app)
  const path = await inviteTo(members.admin, 'dan@example.com', 'admin')
  const other = await inviteTo(ann, 'zoe@example.com', 'viewer')
  const to = `/app/account/members/${idOf(app, 'admin@example.com')}/role`
  await ann.post(to, { role: 'editor' }, { from: '/app/account/members' })
  expect((await new Visitor(app).get(path)).status).toBe(404)
  expect((await new Visitor(app).get(other)).status).toBe(200)
})

test.each(ROLES)('%s: no page offers a page or a form that is refused', async (role) => {
  await using app = await testApp()
  const { members } = await team(app)
  const member = members[role]
  const forms = new Set<string>()
  const seenPaths = new Set<string>()
  const queue = ['/app/links', '/app/account', '/app/go', '/app/links/SPRING26/qr', '/app/print']
  for (const path of queue) {
    if (seenPaths.has(path)) continue
    seenPaths.add(path)
    const seen = await member.get(path)
    expect([path, seen.status < 400]).toEqual([path, true])
    if (!(seen.headers.get('content-type') ?? '').startsWith('text/html')) continue
    for (const [, href = ''] of seen.text.matchAll(/(?:href|formaction)="(\/app\/[^"#]*)/g)) {
      const next = href.replaceAll('&amp;', '&')
      if (!/^\/app\/(assets|links\?|analytics|print\?)/.test(next)) queue.push(next)
    }
    const posts =
      /<form method="post"[^>]* action="([^"]*)"|<form[^>]*action="([^"]*)" method="post"/g
    for (const [, first, second] of seen.text.matchAll(posts)) forms.add(first ?? second ?? '')
  }
  const { text } = await member.get('/app/links')
  const writes = ['tag', 'untag', 'pause', 'resume', 'delete'].filter((action) =>
    text.includes(`name="action" value="${action}"`),
  )
  expect(writes.length).toBe(role === 'viewer' ? 0 : 5)
  forms.delete('/app/sign-out')
  for (const action of forms) {
    const seen = await member.post(action, {}, { from: '/app/links' })
    expect([action, isRefused(seen)]).toEqual([action, false])
  }
  const offers = [seenPaths.has('/app/keys'), forms.has('/app/links')]
  expect(offers).toEqual([role === 'admin', role !== 'viewer'])
})
