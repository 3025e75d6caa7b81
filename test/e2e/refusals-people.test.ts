import type { TestApp } from '../support/app.ts'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, inviteTo, makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'
import { each, type Scenario, scenarios } from '../support/scenario.ts'
import { sharedApp } from '../support/shared.ts'

/** What pages of accounts, members and keys refuse. `roles` has who may open and send which. */

const MEMBERS = '/app/account/members'
const KEYS = '/app/keys'

/** Ann’s account has a viewer and an editor, the owner’s another member. Bob is alone in his. */
async function people(app: TestApp) {
  const { owner } = await setUpOwner(app)
  const ann = await makeMember(app, 'ann@example.com')
  const bob = await makeMember(app, 'bob@example.com')
  const [mate, viewer, editor, nobody] = Array.from({ length: 4 }, () => new Visitor(app))
  const who = { owner, ann, bob, mate, viewer, editor, nobody } as Record<Who, Visitor>
  const join = async (name: 'mate' | 'viewer' | 'editor', to: Visitor, role?: string) =>
    who[name].post(await inviteTo(to, `${name}@example.com`, role), { password: PASSWORD })
  await join('mate', owner)
  await join('viewer', ann, 'viewer')
  await join('editor', ann, 'editor')
  await inviteTo(ann, 'dan@example.com')
  await ann.post(`${KEYS}/new`, { name: 'Web Site', scope: 'write' }, { from: KEYS })
  const idOf = (name: string) =>
    app.administer(({ accounts }) => accounts.findByEmail(`${name}@example.com`)?.id ?? 0)
  const ids = ['owner', 'ann', 'bob', 'viewer', 'editor'].map((name) => [name, idOf(name)])
  const invite = /name="invite" value="(\d+)"/.exec((await ann.get(MEMBERS)).text)?.[1] ?? ''
  const key = /name="key" value="(\d+)"/.exec((await ann.get(KEYS)).text)?.[1] ?? ''
  const path = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  return { who, names: { ...Object.fromEntries(ids), invite, key, token: path.slice(10) } }
}

type Who = 'owner' | 'ann' | 'bob' | 'mate' | 'viewer' | 'editor' | 'nobody'

const OF_OTHERS: Scenario<Who>[] = [
  {
    who: 'bob',
    request: 'POST /app/account/open',
    fields: each('account', ['{ann}', '0', '999', 'x', '']),
    from: '/app/links',
    status: 404,
  },
  {
    who: 'bob',
    request: 'POST /app/account/sessions/end',
    fields: each('session', ['1', '2', '999']),
    from: '/app/account',
    status: 303,
  },
  {
    who: ['bob', 'owner'],
    request: `POST ${MEMBERS}/withdraw`,
    fields: { invite: '{invite}' },
    from: MEMBERS,
    status: 303,
  },
  {
    who: 'owner',
    request: 'POST /app/service/accounts/invites/end',
    fields: { invite: '{invite}' },
    from: '/app/service/accounts',
    status: 303,
  },
  {
    who: 'ann',
    request: [`GET ${MEMBERS}/{bob}/remove`, `POST ${MEMBERS}/{bob}/remove`],
    from: MEMBERS,
    status: 404,
  },
  { who: 'bob', request: `GET ${KEYS}/end?key={key}`, status: 303, body: /^\/app\/keys$/ },
  {
    who: 'bob',
    request: [`POST ${KEYS}/end`, `POST ${KEYS}/revoke`, `POST ${KEYS}/rotate`],
    fields: { key: '{key}' },
    from: KEYS,
    status: 404,
  },
  { who: 'mate', request: ['GET /app/service', 'GET /app/service/accounts'], status: 404 },
  { who: 'mate', request: 'GET /app/links', status: 200, not: '/app/service' },
]

const LAST: Scenario<Who>[] = [
  { who: 'bob', request: `GET ${MEMBERS}`, status: 200, not: '/remove' },
  {
    who: 'bob',
    request: `POST ${MEMBERS}/{bob}/remove`,
    from: MEMBERS,
    body: messageOf('last_admin'),
  },
  {
    who: ['owner', 'mate'],
    request: `POST ${MEMBERS}/{owner}/remove`,
    from: MEMBERS,
    body: messageOf('last_owner'),
  },
  { who: 'owner', request: 'GET /app/account/delete', status: 200, body: 'only owner' },
  {
    who: 'owner',
    request: 'POST /app/account/delete',
    fields: { current: PASSWORD },
    from: '/app/account',
    body: messageOf('last_owner'),
  },
]

const NEED_ADMIN = { from: '/app/links', status: 403, body: messageOf('role_needed', 'admin') }

const ROLES: Scenario<Who>[] = [
  {
    who: ['viewer', 'editor'],
    request: [
      `POST ${MEMBERS}/{ann}/role`,
      `POST ${MEMBERS}/{viewer}/role`,
      `POST ${MEMBERS}/{editor}/role`,
    ],
    fields: each('role', ['viewer', 'editor', 'admin']),
    ...NEED_ADMIN,
  },
  { who: ['viewer', 'editor'], request: `POST ${MEMBERS}/{ann}/remove`, ...NEED_ADMIN },
  { who: 'viewer', request: `POST ${MEMBERS}/{editor}/remove`, ...NEED_ADMIN },
  { who: 'editor', request: `POST ${MEMBERS}/{viewer}/remove`, ...NEED_ADMIN },
  {
    who: 'ann',
    request: [`POST ${MEMBERS}/{viewer}/role`, `POST ${MEMBERS}/invite`],
    fields: each('role', ['', 'owner', 'Admin', 'constructor'], { email: 'zoe@example.com' }),
    from: MEMBERS,
  },
]

const LONG_EMAIL = `${'x'.repeat(300)}@example.com`
const BAD_NAMES = ['', '   ', 'x'.repeat(61), 'a\u0007b', 'a\u202eb', ' WEB  site ', 'default']

const FIELDS: Scenario<Who>[] = [
  {
    who: 'ann',
    request: `POST ${MEMBERS}/invite`,
    refused: {
      email: each('email', ['', 'x', 'VIEWER@example.com', LONG_EMAIL], { role: 'viewer' }),
    },
    from: MEMBERS,
  },
  {
    who: 'ann',
    request: `POST ${KEYS}/new`,
    refused: { name: each('name', BAD_NAMES, { scope: 'read' }) },
    from: KEYS,
    body: 'value="read" checked',
    not: /value="hop_/,
  },
  {
    who: 'ann',
    request: 'POST /app/account/time-zone',
    fields: each('zone', ['Mars/Phobos', '+01:00', '__proto__', '<b>', 'x'.repeat(10_000)]),
    from: '/app/account',
  },
  { who: 'nobody', request: ['GET /app/setup/{token}', 'GET /app/reset/{token}'], status: 404 },
  { who: 'nobody', request: 'GET /app/sign-up', status: 404 },
  {
    who: 'nobody',
    request: 'POST /app/sign-up',
    fields: { email: 'eve@example.com', password: PASSWORD },
    from: '/app/sign-in',
    status: 404,
  },
  {
    who: 'nobody',
    request: 'POST /app/join/{token}',
    refused: { password: [{ email: 'eve@example.com', password: 'Password123' }] },
    keeps: ['email'],
    not: 'Password123',
  },
]

scenarios(sharedApp(people), [...OF_OTHERS, ...LAST, ...ROLES, ...FIELDS])
