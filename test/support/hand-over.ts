import { expect } from 'bun:test'
import type { Body, TestApp } from './app.ts'
import type { Seen, Visitor } from './dashboard.ts'
import { inviteTo, makeMember } from './members.ts'

/** Links go from the account of Pro to that of Enterprise, by Pro, who is an admin of both. */

export const PRO = 'pro@example.com'
export const ENTERPRISE = 'enterprise@example.com'
export const MOVE = '/app/links/move'

export const idOf = (app: TestApp, email: string): number =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

export const open = (visitor: Visitor, id: number): Promise<Seen> =>
  visitor.post('/app/account/open', { account: String(id) }, { from: '/app/links' })

/** `role`: of Pro in the account of Enterprise. */
export async function proAndEnterprise(app: TestApp, role = 'admin') {
  const pro = await makeMember(app, PRO)
  const enterprise = await makeMember(app, ENTERPRISE)
  const joined = await pro.post(await inviteTo(enterprise, PRO, role), {})
  expect(joined.location).toBe('/app/links')
  const ids = { from: idOf(app, PRO), to: idOf(app, ENTERPRISE) }
  await open(pro, ids.from)
  return { pro, enterprise, ...ids }
}

export const moveCodes = (by: Visitor, codes: readonly string[], to: number): Promise<Seen> => {
  const from = `${MOVE}?codes=${codes.join(',')}`
  return by.post(MOVE, { account: String(to), at: `codes=${codes.join(',')}` }, { from })
}

export const codesOf = async (app: TestApp, key: string, query = ''): Promise<unknown[]> => {
  const { body } = await app.call('GET', `/api/list?${query}`, { key })
  return (body.items as Body[]).map(({ code }) => code)
}

export const patch = (app: TestApp, code: string, json: object, key = 'pro') =>
  app.call('PATCH', `/api/links/${code}`, { key, json })
