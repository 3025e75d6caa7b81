import type { AccountRow } from '../../accounts/store.ts'
import { html } from '../../lib/html.ts'
import type { HandOverRefusal } from '../../links/hand-over.ts'
import { exceededQuota, quotaText } from '../../links/quota.ts'
import { requireOwnedIds } from '../../links/update.ts'
import { exportLinks } from '../../lists/export.ts'
import { authorOf, logEvent, type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import { admin, signedInPages } from '../page-routes.ts'
import { refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { filterOf, listPathWith, MOVE_PATH, movePath, parseTableQuery } from '../ui/link-table.ts'

/** Links go to another account of the same admin. */

/** Links moved in one transaction. Other writes run between two of them. */
const AT_ONCE = 1000

export const handOverPages = signedInPages({
  [`GET ${MOVE_PATH}`]: admin(movePage),
  [`POST ${MOVE_PATH}`]: admin(move, movePage),
})

/** The accounts to which the user may move links. */
const targetsOf = ({ deps, user }: PageContext): AccountRow[] =>
  user.others
    .filter(({ role }) => role === 'admin')
    .flatMap(({ id }) => deps.data.accounts.findById(id) ?? [])
    .filter(({ disabledAt }) => disabledAt === null)

const queryOf = ({ query, form }: PageContext): Query =>
  form.has('at') ? Object.fromEntries(new URLSearchParams(form.text('at'))) : query

async function totalOf({ deps, user, request }: PageContext, query: Query): Promise<number> {
  if (query.codes) return idsOfCodes({ deps, user }, query.codes).length
  const filter = filterOf({ deps, user }, parseTableQuery(query))
  const part = { accountId: user.account.id, ...filter, limit: 1, offset: 0 }
  return (await deps.pages.findPage(part, request.signal)).total
}

const idsOfCodes = ({ deps, user }: Pick<PageContext, 'deps' | 'user'>, codes: string): number[] =>
  requireOwnedIds(deps, user.account, [...new Set(codes.split(','))])

/** As many as a bulk of the plan creates. */
async function idsOf({ deps, user }: PageContext, query: Query): Promise<number[]> {
  if (query.codes) return idsOfCodes({ deps, user }, query.codes)
  const { bulkMax } = deps.plans[user.account.plan]
  const filter = filterOf({ deps, user }, parseTableQuery(query))
  const ids: number[] = []
  for await (const links of exportLinks(deps, user.account.id, filter)) {
    ids.push(...links.map(({ id }) => id))
    if (ids.length >= bulkMax) break
  }
  return ids.slice(0, bulkMax)
}

async function move(context: PageContext): Promise<string> {
  const { deps, form } = context
  const to = targetsOf(context).find(({ id }) => String(id) === form.text('account'))
  if (!to) throw refuse('Choose an account of which you are an admin.')
  const query = queryOf(context)
  spendWrite(context)
  const total = await totalOf(context, query)
  const quota = deps.plans[to.plan]
  const exceeded = exceededQuota({ links: to.linkCount + total, urlBytes: 0 }, quota)
  if (exceeded) throw refuse(wordsOf(exceeded, to, context))
  const ids = await idsOf(context, query)
  const ownersOnly = {
    aliases: deps.aliasRules.isForOwners,
    destinations: deps.destinationPolicy.isForOwners,
  }
  const people = { author: authorOf(context), to: to.id, ownersOnly }
  // The writer asks the same again. Here it is about all parts, before the first one is moved.
  const missing = deps.data.links.missingRights({ ...people, ids })
  if (missing) throw refuse(wordsOf(missing, to, context))
  let moved = 0
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE)
    const result = await deps.data.links.handOver({ ...people, ids: some, quota })
    if (typeof result === 'string') {
      const words = wordsOf(result, to, context)
      const before = `${parts.plural(moved, 'link')} moved, the others not: `
      throw refuse(moved > 0 ? before + words : words)
    }
    moved += result.length
  }
  if (moved === 0) throw refuse('There are no such links any more.')
  logEvent(context, 'links.moved', { to_account_id: to.id, links: moved })
  const isOver = ids.length === total
  const message = { done: 'moved', n: String(moved), to: String(to.id) }
  if (isOver) return listPathWith(parseTableQuery({}), message)
  return movePath({ ...query, moved: String(moved) })
}

const MISSING = {
  domain: 'the domain of some of these links or aliases',
  aliases: 'the aliases of some of these links',
  destinations: 'the destinations by rule of some of these links',
}

const isMissing = (refusal: HandOverRefusal): refusal is keyof typeof MISSING => refusal in MISSING

function wordsOf(refusal: HandOverRefusal, to: AccountRow, { deps }: PageContext): string {
  if (refusal === 'not_allowed') return 'Both accounts must be active, and you an admin of both.'
  if (isMissing(refusal)) return `${to.name} may not have ${MISSING[refusal]}.`
  return `The plan of ${to.name} stores at most ${quotaText(refusal, deps.plans[to.plan])}.`
}

async function movePage(context: PageContext): Promise<Response> {
  const { user, form } = context
  const { moved, ...query } = queryOf(context)
  const targets = targetsOf(context)
  const links = parts.plural(await totalOf(context, query), 'link')
  const fields = () => [
    parts.hiddenFields({ at: String(new URLSearchParams(query as Record<string, string>)) }),
    parts.select({
      name: 'account',
      label: 'Account',
      choices: targets.map(({ id, name }) => ({ value: String(id), label: name })),
      value: form.text('account'),
    }),
    parts.button(`Move ${links}`),
  ]
  return page(context, {
    title: `Move ${links} to another account`,
    back: { href: '/app/links', label: 'Links' },
    main: html`
      ${
        moved &&
        parts.notice(
          'good',
          html`<p>${parts.plural(Number(moved) || 0, 'link')} moved.
        Press the button again for the others.</p>`,
        )
      }
      <div class="card">
        <p>Short URLs, printed QR codes, aliases, passcodes, hits and visits stay as they are.
          Members of ${user.account.name} lose access to the links, and its API keys, too. The
          analytics of ${user.account.name} keep what was counted until now.</p>
        ${
          targets.length > 0
            ? parts.form(user, MOVE_PATH, fields())
            : html`<p>You are an admin of no other account. Let an admin of the other account
                <a href="/app/account/members">invite you</a> with this role first.</p>`
        }
      </div>`,
  })
}
