import { Elysia } from 'elysia'
import type { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties, scheduleDeletion, undoDeletion } from '../../links/properties.ts'
import { ShortenBody } from '../../links/schema.ts'
import { requireOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, type Query, requireAccount, signedIn, tryWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { errorOptions, isTemporary, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import {
  destinationPart,
  linkNames,
  smallQr,
  type VisitorState,
  visitorsGet,
} from '../ui/link-head.ts'
import { destination, linkPath } from '../ui/link-parts.ts'
import { badgesOf, offeredTags } from '../ui/link-table.ts'
import { exactTime } from '../ui/local-time.ts'
import { HIT_COUNT_ID, linkHits, zoneOf } from './analytics.ts'
import {
  propertiesForm,
  readProperties,
  type SentProperties,
  saveProperties,
} from './link-properties.ts'
import { qrCard } from './link-qr.ts'

/** One link: its short URL, destination, properties, hits, QR code and deletion. */
export const linkPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.link', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code', ({ user, params, query }) =>
      linkPage(deps, user, { link: requireOwnedLink(deps, user.account, params.code), query }),
    )
    .post('/:code', async ({ user, params, form }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const text = form.text('url')
      const changed = await tryWrite(deps, user, () => {
        const { url } = parseWith(ShortenBody, { url: withScheme(text) })
        return updateOwnedLink(deps, user.account, { code: link.code, url })
      })
      if ('done' in changed) return seeOther(`${linkPath(link.code)}?done=changed`)
      return linkPage(deps, user, { link, query: {}, error: changed.error, url: text })
    })
    .post('/:code/properties', async ({ user, params, form }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const sent = readProperties(form, zoneOf(requireAccount(deps, user)))
      const saved = await tryWrite(deps, user, () => saveProperties(deps, user, link, sent))
      if ('done' in saved) return seeOther(`${linkPath(link.code)}?done=saved`)
      return linkPage(deps, user, { link, query: {}, error: saved.error, sent })
    })
    .post('/:code/pause', async ({ user, params, form }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const paused = form.text('paused') === '1'
      const changed = await tryWrite(deps, user, () =>
        changeProperties(deps, user.account, [link.code], { paused }),
      )
      const done = paused ? 'paused' : 'resumed'
      if ('done' in changed) return seeOther(`${linkPath(link.code)}?done=${done}`)
      return linkPage(deps, user, { link, query: {}, error: changed.error })
    })
    .get('/:code/delete', ({ user, params }) =>
      deletePage(deps, user, requireOwnedLink(deps, user.account, params.code)),
    )
    .post('/:code/delete', async ({ user, params }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const deleted = await tryWrite(deps, user, () =>
        scheduleDeletion(deps, user.account, [link.code]),
      )
      if ('done' in deleted) return seeOther(`/app/links?done=deleted&undo=${link.code}`)
      return deletePage(deps, user, link, deleted.error)
    })
    .post('/:code/undo-delete', async ({ user, params }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const kept = await tryWrite(deps, user, () => undoDeletion(deps, user.account, [link.code]))
      if ('done' in kept) return seeOther(`${linkPath(link.code)}?done=kept`)
      return linkPage(deps, user, { link, query: {}, error: kept.error })
    })

const DONE = {
  changed:
    'The destination is changed. It takes effect immediately, also for QR codes already printed.',
  saved: 'The properties are saved. They take effect immediately.',
  paused: 'The link is paused. Its code stays reserved for you.',
  resumed: 'The link is resumed.',
  kept: 'The link is not deleted.',
}

interface LinkPageProps {
  link: Link
  query: Query
  error?: AppError
  /** The destination that was refused. */
  url?: string
  /** The properties that were refused. */
  sent?: SentProperties
}

async function linkPage(
  deps: DashboardDeps,
  user: CurrentUser,
  props: LinkPageProps,
): Promise<Response> {
  const { link, query, error, url, sent } = props
  const properties = deps.properties.propertiesOf(link.id)
  const zone = zoneOf(requireAccount(deps, user))
  const disabled = deps.moderation.reads.find(link.code)?.reason
  const counted = { ...link, hitCount: deps.hits.ofLink(link.id) }
  const state = { link: counted, properties, zone, disabled, now: deps.clock() }
  const isUrlError = error && url !== undefined && !isTemporary(error)
  const isFieldError = isUrlError || Object.keys(sent?.errors ?? {}).length > 0
  const tags = await offeredTags(deps, user.account)
  return page(user, {
    title: properties.title ?? link.code,
    current: 'links',
    ...(error && errorOptions(error)),
    back: { href: '/app/links', label: 'All links' },
    heading: html``,
    main: html`
      ${parts.flash(DONE, query.done)}
      ${error && !isFieldError && parts.errorNotice(error.message)}
      ${deletionNotice(user, state)}
      ${stoppedNotice(deps, link, disabled)}
      <section class="card link-head">
        ${linkNames(user, {
          link,
          properties,
          shortUrl: deps.addresses.short(link.code),
          badges: badgesOf(state),
        })}
        ${smallQr(link.code)}
        ${destinationPart(user, {
          link,
          typed: url,
          error: isUrlError ? error.message : undefined,
          isOpen: query.edit === 'url' || url !== undefined,
        })}
        ${factsLine(deps, state)}
      </section>
      ${propertiesForm(user, { link, properties, zone, tags, sent })}
      ${await linkHits(deps, user, { link, query })}
      ${qrCard(deps, link, query)}`,
  })
}

function deletionNotice(
  user: CurrentUser,
  { link: { code }, properties: { delete_at: deleteAt }, zone, now }: VisitorState,
): Html | false {
  if (deleteAt === null) return false
  return parts.notice(
    'note',
    html`<p><strong>This link will be deleted in ${parts.countdown(deleteAt, now)},</strong> at
        ${exactTime(deleteAt, zone)}. It has stopped working.</p>
      ${parts.buttonForm(user, `${linkPath(code)}/undo-delete`, 'Undo')}`,
  )
}

/** Why the link answers 410, if it does. */
function stoppedNotice(
  { blocklist }: DashboardDeps,
  { url }: Link,
  disabled: string | undefined,
): Html | false {
  if (disabled !== undefined) {
    return parts.notice(
      'bad',
      html`<p><strong>The operator of this service has disabled this link.</strong> Its visitors
        get “Link disabled”. The reason: ${disabled}</p>`,
    )
  }
  if (url === null || !blocklist.isBlocked(new URL(url))) return false
  return parts.notice(
    'bad',
    html`<p><strong>This link does not redirect:</strong> the host of its destination is on the
      abuse blocklist. Its visitors get “Link disabled”.</p>`,
  )
}

interface LinkState extends VisitorState {
  /** Why the operator disabled the code. */
  disabled: string | undefined
}

function factsLine(deps: DashboardDeps, state: LinkState): Html {
  const { link, disabled, properties } = state
  const isBlocked = (url: string | null) => url !== null && deps.blocklist.isBlocked(new URL(url))
  const isStopped = disabled !== undefined || isBlocked(link.url)
  const expired_url = isBlocked(properties.expired_url) ? null : properties.expired_url
  const answer = visitorsGet({ ...state, properties: { ...properties, expired_url } })
  return html`<div class="link-facts">
    ${!isStopped && html`<p>${answer}</p>`}
    ${parts.facts([
      ['Hits', html`<span id="${HIT_COUNT_ID}">${parts.count(link.hitCount)}</span>`],
      ['Created', parts.time(link.createdAt)],
      ['Passcode', 'shown once, for the API only'],
    ])}
  </div>`
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
    back: { href: path, label: code },
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
        ['Hits', `${parts.count(deps.hits.ofLink(link.id))}, deleted with the link`],
      ])}
      <p>To send visitors elsewhere, <a href="${path}">change the destination</a> instead.</p>
      <div class="row">
        ${parts.buttonForm(user, `${path}/delete`, `Delete ${code}`, { look: 'danger' })}
        ${parts.linkButton('Keep it', path)}
      </div>
    </div>`,
  })
}
