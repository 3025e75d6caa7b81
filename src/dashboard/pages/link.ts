import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { scheduleDeletion, undoDeletion } from '../../links/properties.ts'
import { ShortenBody } from '../../links/schema.ts'
import { requireOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, signedIn, spendWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { catchFormError, errorOptions, htmlResponse, isTemporary, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { copyField, destination, linkPath } from '../ui/link-parts.ts'
import { linkHits } from './analytics.ts'
import { qrCard } from './link-qr.ts'

type Query = Readonly<Record<string, string | undefined>>

/** One link: its data, its destination, its hits, its QR code, its deletion. */
export const linkPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.link', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code', ({ user, params, query }) =>
      linkPage(deps, user, { link: requireOwnedLink(deps, user.account, params.code), query }),
    )
    .post('/:code', async ({ user, params, form }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const text = form.text('url')
      const changed = await catchFormError(() => {
        spendWrite(deps, user.account)
        const { url } = parseWith(ShortenBody, { url: withScheme(text) })
        return updateOwnedLink(deps, user.account, { code: link.code, url })
      })
      if ('done' in changed) return seeOther(`${linkPath(link.code)}?done=changed`)
      return linkPage(deps, user, { link, query: {}, error: changed.error, url: text })
    })
    .get('/:code/hits', ({ user, params, query }) => {
      try {
        const link = requireOwnedLink(deps, user.account, params.code)
        return htmlResponse(liveCount(deps, link, Number(query.n) || 0))
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        // The link was deleted while its page was open. Reload the page, which reports that.
        const path = linkPath(encodeURIComponent(params.code))
        return htmlResponse(html``, { status: error.status, headers: { 'hx-redirect': path } })
      }
    })
    .get('/:code/delete', ({ user, params }) =>
      deletePage(deps, user, requireOwnedLink(deps, user.account, params.code)),
    )
    .post('/:code/delete', async ({ user, params }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const deleted = await catchFormError(() => {
        spendWrite(deps, user.account)
        return scheduleDeletion(deps, user.account, [link.code])
      })
      if ('done' in deleted) return seeOther(`/app/links?done=deleted&undo=${link.code}`)
      return deletePage(deps, user, link, deleted.error)
    })
    .post('/:code/undo-delete', async ({ user, params }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const kept = await catchFormError(() => {
        spendWrite(deps, user.account)
        return undoDeletion(deps, user.account, [link.code])
      })
      if ('done' in kept) return seeOther(`${linkPath(link.code)}?done=kept`)
      return linkPage(deps, user, { link, query: {}, error: kept.error })
    })

const DONE = {
  changed:
    'The destination is changed. It takes effect immediately, also for QR codes already printed.',
  kept: 'The link is not deleted. It works again.',
}

interface LinkPageProps {
  link: Link
  query: Query
  error?: AppError
  /** The destination that was refused. */
  url?: string
}

async function linkPage(
  deps: DashboardDeps,
  user: CurrentUser,
  props: LinkPageProps,
): Promise<Response> {
  const { link, query, error } = props
  const shortUrl = deps.addresses.short(link.code)
  return page(user, {
    title: link.code,
    current: 'links',
    ...(error && errorOptions(error)),
    main: html`
      <p><a href="/app/links">All links</a></p>
      ${link.url !== null && parts.flash(DONE, query.done)}
      ${deletionNotice(deps, user, link)}
      ${error && isTemporary(error) && parts.errorNotice(error.message)}
      ${
        link.url === null &&
        parts.notice(
          'note',
          html`<p><strong>This code is reserved and has no destination yet.</strong> Its short URL
          answers “not found” until you set one.</p>`,
        )
      }
      ${stoppedNotice(deps, link)}
      <div class="cards">
        ${aboutCard(deps, link, shortUrl)}
        ${destinationCard(user, props)}
      </div>
      ${await linkHits(deps, user, { link, query })}
      ${qrCard(deps, link, query)}
      ${parts.card('Delete the code', [
        html`<p>Its short URL and its QR code stop working, and anybody can claim the code.</p>`,
        parts.linkButton('Delete the code…', `${linkPath(link.code)}/delete`, 'danger'),
      ])}`,
  })
}

function deletionNotice(deps: DashboardDeps, user: CurrentUser, { id, code }: Link): Html | false {
  const { deleteAt } = deps.properties.propertiesOf(id)
  if (deleteAt === null) return false
  const seconds = Math.max(0, Math.ceil((deleteAt - deps.clock()) / 1000))
  return parts.notice(
    'note',
    html`<p><strong>This link is deleted in ${seconds} seconds.</strong> It has stopped working.</p>
      ${parts.buttonForm(user, `${linkPath(code)}/undo-delete`, 'Undo')}`,
  )
}

/** Why the link answers 410, if it does. */
function stoppedNotice({ moderation, blocklist }: DashboardDeps, link: Link): Html | false {
  const disabled = moderation.reads.find(link.code)
  if (disabled) {
    return parts.notice(
      'bad',
      html`<p><strong>The operator of this service has disabled this link.</strong> Its visitors
        get “Link disabled”. The reason: ${disabled.reason}</p>`,
    )
  }
  if (link.url === null || !blocklist.isBlocked(new URL(link.url))) return false
  return parts.notice(
    'bad',
    html`<p><strong>This link does not redirect:</strong> the host of its destination is on the
      abuse blocklist. Its visitors get “Link disabled”.</p>`,
  )
}

const aboutCard = (deps: DashboardDeps, link: Link, shortUrl: string): Html =>
  parts.card('Short link', [
    copyField('Short URL', shortUrl, 'short-url'),
    parts.facts([
      ['Destination', link.url === null ? 'none yet' : destination(link.url, '#field-url')],
      ['Created', parts.time(link.createdAt)],
      ['Hits', liveCount(deps, link, 0)],
    ]),
  ])

/** Half an hour at one poll every five seconds. */
const POLLS_MAX = 360

const hitCount = ({ hits }: DashboardDeps, { id }: Link): string =>
  parts.count(hits.of([id]).get(id) ?? 0)

/** The hit count, which refreshes itself. `polls`: how often it has done so. */
function liveCount(deps: DashboardDeps, link: Link, polls: number): Html {
  const count = hitCount(deps, link)
  if (polls >= POLLS_MAX) return html`<span>${count}</span>`
  return html`<span data-poll hx-get="${`${linkPath(link.code)}/hits?n=${polls + 1}`}"
    hx-trigger="every 5s" hx-swap="outerHTML">${count}</span>`
}

function destinationCard({ csrf }: CurrentUser, { link, url, error }: LinkPageProps): Html {
  const title = link.url === null ? 'Set the destination' : 'Change the destination'
  return parts.card(
    title,
    parts.form({
      action: linkPath(link.code),
      csrf,
      children: [
        parts.urlField({
          name: 'url',
          label: 'Destination',
          value: url ?? link.url ?? '',
          required: true,
          hint: 'Takes effect immediately. The short URL and its QR code stay the same.',
          error: error && !isTemporary(error) ? error.message : undefined,
        }),
        parts.button(title),
      ],
    }),
  )
}

function deletePage(
  deps: DashboardDeps,
  user: CurrentUser,
  link: Link,
  error?: AppError,
): Response {
  const { code, url } = link
  const path = linkPath(code)
  return page(user, {
    title: `Delete ${code}`,
    current: 'links',
    ...(error && errorOptions(error)),
    main: html`<div class="card">
      ${parts.errorNotice(error?.message)}
      ${parts.notice(
        'bad',
        html`<p><strong>${deps.addresses.short(code)} stops working immediately.</strong>
        You can undo this for 30 seconds. Anybody can then claim the code ${code} and choose the
        destination of every link and printed QR code with it.</p>`,
      )}
      ${parts.facts([
        ['Destination', url === null ? 'none yet' : destination(url, path)],
        ['Hits', `${hitCount(deps, link)}, deleted with the link`],
      ])}
      <p>To send visitors elsewhere, <a href="${path}">change the destination</a> instead.</p>
      <div class="row">
        ${parts.buttonForm(user, `${path}/delete`, `Delete ${code}`, { look: 'danger' })}
        ${parts.linkButton('Keep it', path)}
      </div>
    </div>`,
  })
}
