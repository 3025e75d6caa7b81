import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, requireOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { goTo, htmlAnswer } from '../answers.ts'
import { attempt, isForLater, refusedAs } from '../attempt.ts'
import { signedIn, spendWrite, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { fragment, page } from '../ui/layout.ts'
import { copyField, count, destination, linkPath } from '../ui/link-parts.ts'
import { chooseQr, qrCard } from './link-qr.ts'
import { linkNumbers } from './numbers.ts'

type Query = Readonly<Record<string, string | undefined>>

/** One link: what it is, where it leads, its QR code, its end. */
export const linkPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.link', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code', ({ visitor, params, query }) =>
      linkPage(deps, visitor, {
        link: requireOwnedLink(deps, visitor.account, params.code),
        query,
      }),
    )
    .post('/:code', async ({ visitor, params, form }) => {
      const link = requireOwnedLink(deps, visitor.account, params.code)
      const text = form.text('url')
      const tried = await attempt(() => {
        spendWrite(deps, visitor.account)
        const { url } = parseWith(ShortenBody, { url: text })
        return updateOwnedLink(deps, visitor.account, { code: link.code, url })
      })
      if ('done' in tried) return goTo(`${linkPath(link.code)}?done=changed`)
      return linkPage(deps, visitor, { link, query: {}, refused: tried.refused, url: text })
    })
    .get('/:code/hits', ({ account, params, query }) => {
      try {
        const link = requireOwnedLink(deps, account, params.code)
        return fragment(hits(deps, link, Number(query.n) || 0))
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        // Deleted while its page was open: the page itself says so.
        const path = linkPath(encodeURIComponent(params.code))
        return htmlAnswer(html``, { status: error.status, headers: { 'hx-redirect': path } })
      }
    })
    .get('/:code/delete', ({ visitor, params }) =>
      deletePage(deps, visitor, requireOwnedLink(deps, visitor.account, params.code)),
    )
    .post('/:code/delete', async ({ visitor, params }) => {
      const link = requireOwnedLink(deps, visitor.account, params.code)
      const tried = await attempt(() => {
        spendWrite(deps, visitor.account)
        return deleteOwnedLink(deps, visitor.account, link.code)
      })
      if ('done' in tried) return goTo('/app/links?done=deleted')
      return deletePage(deps, visitor, link, tried.refused)
    })

const DONE: Readonly<Record<string, string>> = {
  changed: 'The destination is changed. It counts from this moment, for printed QR codes too.',
}

interface Shown {
  link: Link
  query: Query
  refused?: AppError
  /** What the refused form held. */
  url?: string
}

async function linkPage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Promise<Response> {
  const { link, query, refused } = shown
  const shortUrl = deps.addresses.short(link.code)
  const done = query.done ?? ''
  const good = Object.hasOwn(DONE, done) && link.url !== null ? DONE[done] : undefined
  return page(visitor, {
    ...{ title: link.code, current: 'links' },
    ...(refused && refusedAs(refused)),
    main: html`
      <p><a href="/app/links">All links</a></p>
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      ${refused && isForLater(refused) && parts.notice('bad', html`<p>${refused.message}</p>`)}
      ${
        link.url === null &&
        parts.notice(
          'note',
          html`<p><strong>This code is reserved and leads nowhere yet.</strong> Its short URL
          answers “not found” until you set a destination.</p>`,
        )
      }
      ${stoppedNotice(deps, link)}
      <div class="cards">
        ${aboutCard(deps, link, shortUrl)}
        ${destinationCard(visitor, shown)}
      </div>
      ${await linkNumbers(deps, visitor, link, query)}
      ${qrCard(link, shortUrl, chooseQr(query))}
      ${parts.card('Delete the code', [
        html`<p>Its short URL and its QR code stop working, and anybody can claim the code.</p>`,
        parts.linkButton('Delete the code…', `${linkPath(link.code)}/delete`, 'danger'),
      ])}`,
  })
}

/** Why visitors get 410, where they do. */
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
    html`<dl class="facts">
      <dt>Leads to</dt><dd>${
        link.url === null ? 'nowhere yet' : destination(link.url, '#field-url')
      }</dd>
      <dt>Created</dt><dd>${parts.time(link.createdAt)}</dd>
      <dt>Hits</dt><dd>${hits(deps, link, 0)}</dd>
    </dl>`,
  ])

/** Half an hour of a page that is looked at: then it asks no more. */
const POLLS_MAX = 360

/** The count, which asks for itself again. `polls`: how often it has done so. */
function hits(deps: DashboardDeps, { id, code }: Link, polls: number): Html {
  const now = count(deps.hits.of([id]).get(id) ?? 0)
  if (polls >= POLLS_MAX) return html`<span>${now}</span>`
  return html`<span data-poll hx-get="${`${linkPath(code)}/hits?n=${polls + 1}`}"
    hx-trigger="every 5s" hx-swap="outerHTML">${now}</span>`
}

function destinationCard({ csrf }: Visitor, { link, url, refused }: Shown): Html {
  const error = refused && !isForLater(refused) ? refused.message : undefined
  const isNew = link.url === null
  return parts.card(isNew ? 'Set the destination' : 'Change the destination', [
    parts.form({
      ...{ action: linkPath(link.code), csrf },
      children: [
        parts.field({
          ...{ name: 'url', label: 'Destination', value: url ?? link.url ?? '', error },
          ...{ required: true, autocomplete: 'off' },
          hint: 'It counts at once. The short URL and its QR code stay the same.',
          extra: { placeholder: 'https://', inputmode: 'url', spellcheck: 'false' },
        }),
        parts.button(isNew ? 'Set the destination' : 'Change the destination'),
      ],
    }),
  ])
}

function deletePage(
  deps: DashboardDeps,
  visitor: Visitor,
  { id, code, url }: Link,
  refused?: AppError,
): Response {
  const hitCount = deps.hits.of([id]).get(id) ?? 0
  const path = `${linkPath(code)}/delete`
  return page(visitor, {
    ...{ title: `Delete ${code}`, current: 'links' },
    ...(refused && refusedAs(refused)),
    main: html`<div class="card">
      ${refused && parts.notice('bad', html`<p>${refused.message}</p>`)}
      ${parts.notice(
        'bad',
        html`<p><strong>${deps.addresses.short(code)} stops working at once.</strong>
        Anybody can then claim the code ${code}: every link and every printed QR code with it
        would lead where they want. There is no way back.</p>`,
      )}
      <dl class="facts">
        <dt>Leads to</dt><dd>${url === null ? 'nowhere yet' : destination(url, linkPath(code))}</dd>
        <dt>Hits</dt><dd>${count(hitCount)}, which go with it</dd>
      </dl>
      <p>To lead visitors elsewhere, <a href="${linkPath(code)}">change the destination</a>
      instead.</p>
      <div class="row">
        ${parts.buttonForm(visitor, { action: path, label: `Delete ${code}`, look: 'danger' })}
        ${parts.linkButton('Keep it', linkPath(code))}
      </div>
    </div>`,
  })
}
