import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, makeMember } from '../support/members.ts'

/** The log says who did what to sessions, accounts, keys and invitations, and no secret. */

const ACCOUNTS = '/app/service/accounts'
const NETWORK = '192.0.2.0/24'

type Line = Record<string, unknown>

/** The security events since `from` lines, without time, level and request id. */
function events(app: TestApp, from = 0): Line[] {
  return app.log.slice(from).flatMap((text) => {
    const { time, level, request_id, ...line } = JSON.parse(text) as Line
    if (!/^(session|throttle|password|key|account|owner|invite)\./.test(String(line.event))) {
      return []
    }
    expect(request_id).toMatch(/^[0-9a-f-]{36}$/)
    return [line]
  })
}

async function during(app: TestApp, work: () => Promise<unknown>): Promise<Line[]> {
  const from = app.log.length
  await work()
  return events(app, from)
}

const idIn = ({ text }: Seen, name: string): string =>
  new RegExp(`name="${name}" value="(\\d+)"`).exec(text)?.[1] ?? ''

test('an owner who is set up, signs in, and sees to keys and members leaves a line for each', async () => {
  await using app = await testApp({ env: { SESSION_IDLE_MINUTES: '10080' } })
  const { owner } = await setUpOwner(app)
  expect(events(app)).toEqual([
    { event: 'account.created', account_id: 1, plan: 'enterprise', network: NETWORK },
    { event: 'owner.set_up', account_id: 1, network: NETWORK },
    { event: 'session.started', account_id: 1, network: NETWORK },
  ])
  const from = '/app/account'
  const post = (path: string, fields: Record<string, string> = {}) =>
    during(app, () => owner.post(path, fields, { from }))
  const own = { account_id: 1, network: NETWORK }
  expect(await post('/app/keys/rotate', { key: '1' })).toEqual([
    { event: 'key.rotated', key_id: 2, ...own },
  ])
  expect(await post('/app/keys/revoke', { key: '2' })).toEqual([
    { event: 'key.revoked', key_id: 2, ...own },
  ])
  expect(await post('/app/keys/end', { key: '2' })).toEqual([
    { event: 'key.ended', key_id: 2, ...own },
  ])
  const named = { name: 'ann@example.com', scope: 'read' }
  expect(await post('/app/keys/new', named)).toEqual([{ event: 'key.created', key_id: 3, ...own }])

  const ann = new Visitor(app, { from: '2001:db8:1:2::9' })
  const invited = await during(app, async () => {
    const seen = await owner.post(`${ACCOUNTS}/invites`, { email: '', plan: 'pro' }, { from })
    const path = /value="http:\/\/hop\.test([^"]+)"/.exec(seen.text)?.[1] ?? ''
    await ann.post(path, { email: 'ann@example.com', password: PASSWORD })
  })
  const anns = { account_id: 2, network: '2001:db8:1::/48' }
  expect(invited).toEqual(
    [
      { event: 'invite.created', account_id: 1, plan: 'pro', network: NETWORK },
      { event: 'account.created', plan: 'pro', ...anns },
      { event: 'invite.accepted', invite_id: 2, by_account_id: 1, ...anns },
      { event: 'session.started', ...anns },
    ].map((line) => expect.objectContaining(line)),
  )

  await owner.post(`${ACCOUNTS}/invites`, { email: '', plan: 'pro' }, { from })
  const invite = idIn(await owner.get(ACCOUNTS), 'invite')
  expect(await post(`${ACCOUNTS}/invites/end`, { invite })).toEqual([
    { event: 'invite.withdrawn', invite_id: Number(invite), ...own },
  ])
  const byOwner = { account_id: 2, by_account_id: 1, network: NETWORK }
  expect(await post(`${ACCOUNTS}/2/plan`, { plan: 'free' })).toEqual([
    { event: 'account.plan_changed', plan: 'free', ...byOwner },
  ])
  expect(await post(`${ACCOUNTS}/2/disable`)).toEqual([{ event: 'account.disabled', ...byOwner }])
  const refused = await during(app, () => new Visitor(app).signIn('ann@example.com'))
  expect(refused).toEqual([
    { event: 'session.refused', account_id: 2, reason: 'disabled', network: NETWORK },
  ])
  expect(await post(`${ACCOUNTS}/2/enable`)).toEqual([{ event: 'account.enabled', ...byOwner }])
})

test('a member’s sign-ins, passwords and the end of the account each leave a line', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const own = { account_id: 1, network: NETWORK }
  const from = '/app/account'
  const changed = await during(app, () =>
    ann.post(
      '/app/account/security/password',
      { current: PASSWORD, password: 'eleven silent bees' },
      { from },
    ),
  )
  expect(changed).toEqual([{ event: 'password.changed', ...own }])
  const reset = addOneTimeLink(app, { purpose: 'reset', email: 'ann@example.com' })
  expect(await during(app, () => ann.post(reset, { password: PASSWORD }))).toEqual([
    { event: 'password.reset', ...own },
    { event: 'session.started', ...own },
  ])
  expect(await during(app, () => new Visitor(app).signIn('ann@example.com'))).toEqual([
    { event: 'session.started', ...own },
  ])
  const wrong = await during(app, () => new Visitor(app).signIn('ann@example.com', 'not this one'))
  expect(wrong).toEqual([{ event: 'session.refused', reason: 'password', ...own }])
  const unknown = await during(app, () => new Visitor(app).signIn('nobody@example.com'))
  expect(unknown).toEqual([{ event: 'session.refused', reason: 'password', network: NETWORK }])
  const deleted = await during(app, () =>
    ann.post('/app/account/delete', { current: PASSWORD }, { from }),
  )
  expect(deleted).toEqual([{ event: 'account.deletion_started', ...own }])
})

test('somebody who guesses leaves one line when the throttle engages, and the answer’s request id', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  await makeMember(app, 'ann@example.com')
  const eve = new Visitor(app, { from: '203.0.113.77' })
  const lines = await during(app, async () => {
    for (let i = 0; i < 8; i++) await eve.signIn('ann@example.com', `guess number ${i}`)
  })
  const engaged = lines.filter(({ event }) => event === 'throttle.engaged')
  expect(engaged).toEqual([
    { event: 'throttle.engaged', account_id: 1, gate: 'pair', network: '203.0.113.0/24' },
  ])
  const reasons = lines.filter(({ event }) => event === 'session.refused').map((it) => it.reason)
  expect(reasons).toEqual([...Array(5).fill('password'), ...Array(3).fill('throttled')])
  const { headers } = await eve.signIn('ann@example.com', 'one more')
  expect(app.log.at(-1)).toContain(`"request_id":"${headers.get('x-request-id')}"`)
  expect(app.log.join('\n')).not.toContain('203.0.113.77')
})

test('no line of the log has an e-mail address, a password, a key or a link in it', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const { owner, key } = await setUpOwner(app)
  const from = '/app/account'
  const invited = await owner.post(
    `${ACCOUNTS}/invites`,
    { email: 'ann@example.com', plan: 'pro' },
    { from },
  )
  const path = /value="http:\/\/hop\.test([^"]+)"/.exec(invited.text)?.[1] ?? '?'
  const rotated = await owner.post('/app/keys/rotate', { key: '1' }, { from })
  await owner.post('/app/keys/new', { name: 'ann@example.com', scope: 'read' }, { from })
  const next = /value="(hop_\w+)"/.exec(rotated.text)?.[1] ?? '?'
  await new Visitor(app).post(path, { email: 'ann@example.com', password: PASSWORD })
  await new Visitor(app).signIn('ann@example.com', 'not this one')
  await new Visitor(app).signIn('\u0000"}\n{"event":"x"}@example.com', PASSWORD)
  const log = app.log.join('\n')
  expect(log).toContain('session.refused')
  const token = path.split('/').at(-1) ?? '?'
  for (const secret of [OWNER, 'ann@', PASSWORD, 'not this one', key, next, token, '192.0.2.50']) {
    expect(log).not.toContain(secret)
  }
})
