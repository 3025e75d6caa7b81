import { Elysia } from 'elysia'
import { type DayRange, withFewHidden } from '../../analytics/visits.ts'
import { AppError } from '../../errors.ts'
import { clientOf } from '../../http/context.ts'
import { rateLimited } from '../../http/guard.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import type { Code } from '../../lib/code.ts'
import { html } from '../../lib/html.ts'
import { authorOf, ownLink, type PageContext, spendWrite } from '../auth/guard.ts'
import { readHits } from '../cards/hits.ts'
import type { DashboardDeps } from '../deps.ts'
import { editor, signedInPages } from '../page-routes.ts'
import * as parts from '../ui/components.ts'
import { hitSection } from '../ui/hit-chart.ts'
import { page, publicPage } from '../ui/layout.ts'
import { addressText, destination, linkPath } from '../ui/link-parts.ts'
import { visitSection } from '../ui/visit-panels.ts'

/** The public page of a link: its hits and visitors, for everyone with its secret address. */

const TOKEN_BYTES = 16
const TOKEN = /^[\w-]{22}$/

/** Lets the owner of a link switch its page on and off. */
export const publicPageForms = signedInPages({
  'POST /app/links/:code/share': editor(share),
  'POST /app/links/:code/unshare': editor(async (context) => {
    const { id: linkId, code } = ownLink(context)
    spendWrite(context)
    await context.deps.data.publicPages.unshare({ author: authorOf(context), linkId })
    return `${linkPath(code)}/settings?done=unshared#public`
  }),
})

/** Public. Charged like other reads without a key. */
export const publicPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.shared', prefix: '/app/shared' })
    .onBeforeHandle(({ request }) => {
      const budget = deps.limiter.take('read', undefined, clientOf(deps.address, request))
      if (!budget.allowed) throw rateLimited(budget)
    })
    .get('/:token', ({ request, params, query }) =>
      showPublicPage({ deps, request, query }, params.token),
    )

async function share(context: PageContext): Promise<Response> {
  const { deps, form } = context
  const { id: linkId, code } = ownLink(context)
  const showsUrl = form.text('url') === '1'
  const token = Buffer.from(deps.random(TOKEN_BYTES)).toString('base64url')
  spendWrite(context)
  const author = authorOf(context)
  const hash = deps.hasher.hash('shared-page', token)
  if (!(await deps.data.publicPages.share({ author, linkId, hash, showsUrl }))) {
    throw new AppError('code_not_found', code)
  }
  const path = linkPath(code)
  return page(context, {
    title: 'Public page',
    back: { href: `${path}/settings#public`, label: 'Settings' },
    main: html`<div class="card">
      <p>Everybody with this address sees the hits and visitors of ${code}, and nothing else.</p>
      ${parts.secretOnce('Address of the public page', `${deps.baseUrl}/app/shared/${token}`)}
    </div>`,
  })
}

/** After this time, details of a day have been written. */
const WRITTEN_MS = HOUR

/**
 * The last complete week from Monday in UTC, whatever range the chart has. Of two ranges that
 * overlap, and of the same one before and after a visit, the difference would show values of few
 * hits. Weeks do not overlap, and a complete one does not change.
 */
function lastWeek(now: number): DayRange {
  const today = Math.floor((now - WRITTEN_MS) / DAY)
  // 1970 began on a Thursday.
  const monday = today - ((today + 3) % 7)
  return { from: monday - 7, to: monday }
}

/** Whether visitors get “Link disabled”: by the code, or by the host. */
const isTakenDown = (
  { data, blocklist }: DashboardDeps,
  { code, url }: { code: Code; url: string | null },
): boolean =>
  data.moderation.findByCode(code) !== undefined ||
  (url !== null && blocklist.isBlocked(new URL(url)))

async function showPublicPage(
  context: Pick<PageContext, 'deps' | 'request' | 'query'>,
  token: string,
): Promise<Response> {
  const { deps } = context
  const stored = TOKEN.test(token)
    ? deps.data.publicPages.findByHash(deps.hasher.hash('shared-page', token))
    : undefined
  if (!stored || isTakenDown(deps, stored)) throw new AppError('page_not_found')
  const counted = { linkId: stored.linkId }
  const empty = html`<p>This link has not been followed yet.</p>`
  const chart = await readHits(context, { counted, zone: 'UTC', empty })
  const days = lastWeek(deps.clock())
  const { isOn, hasCountries } = deps.visitDetails
  const visits = withFewHidden(await deps.visitDetails.of(counted, days, `link ${stored.linkId}`))
  const path = `/app/shared/${token}`
  const shownUrl = stored.showsUrl === 1 && stored.isProtected === 0 ? stored.url : null
  return publicPage(context, {
    title: addressText(deps.addresses.display(stored)),
    main: html`
      ${shownUrl !== null && html`<p>${destination(shownUrl)}</p>`}
      ${hitSection({ path }, chart)}
      ${visitSection({ visits, days, isOn, hasCountries })}
      <p class="hint">Sources, devices and other details are those of the last complete week (Monday
        to Sunday, UTC). Values with fewer than three hits are shown as “Other”.</p>`,
  })
}
