import { Elysia } from 'elysia'
import type { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import { ShortenBody } from '../../links/schema.ts'
import { requireOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, type Query, requireAccount, signedIn, tryWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { errorOptions, isTemporary, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { confirmPage } from '../ui/confirm.ts'
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
import { zoneOf } from '../ui/zone-form.ts'
import { HIT_COUNT_ID, linkHits } from './analytics.ts'
import { aliasCard, saveAliases } from './link-aliases.ts'
import {
  propertiesForm,
  readProperties,
  type SentProperties,
  saveProperties,
} from './link-properties.ts'
import { qrCard } from './link-qr.ts'
import { sharingCard } from './shared.ts'

/** One link: its short URL, destination, properties, hits, QR code and deletion. */
export const linkPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.link', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code', ({ user, params, query }) =>
      linkPage(deps, user, { link: requireOwnedLink(deps, user.account, params.code), query }),
    )
    .post('/:code', ({ user, params, form }) => {
      const text = form.text('url')
      return changeLink(deps, user, params.code, {
        change: ({ code }) => {
          const { url } = parseWith(ShortenBody, { url: withScheme(text) })
          return updateOwnedLink(deps, user.account, { code, url })
        },
        done: 'changed',
        typed: { url: text },
      })
    })
    .post('/:code/properties', ({ user, params, form }) => {
      const sent = readProperties(form, zoneOf(requireAccount(deps, user)))
      return changeLink(deps, user, params.code, {
        change: (link) => saveProperties(deps, user, link, sent),
        done: 'saved',
        typed: { sent },
      })
    })
    .post('/:code/aliases', ({ user, params, form }) =>
      changeLink(deps, user, params.code, {
        change: (link) => saveAliases(deps, user, link, form),
        done: 'aliases',
        typed: { alias: form.text('add') },
      }),
    )
    .post('/:code/pause', ({ user, params, form }) => {
      const paused = form.text('paused') === '1'
      return changeLink(deps, user, params.code, {
        change: ({ code }) => changeProperties(deps, user.account, [code], { paused }),
        done: paused ? 'paused' : 'resumed',
      })
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
    .post('/:code/undo-delete', ({ user, params }) =>
      changeLink(deps, user, params.code, {
        change: ({ code }) => undoDeletion(deps, user.account, [code]),
        done: 'kept',
      }),
    )

interface LinkChange {
  change: (link: Link) => Promise<unknown>
  /** A name in `DONE`. */
  done: keyof typeof DONE
  /** What the page shows again if it is refused. */
  typed?: Pick<LinkPageProps, 'url' | 'alias' | 'sent'>
}

/** Changes a link of the account, and shows its page. */
async function changeLink(
  deps: DashboardDeps,
  user: CurrentUser,
  text: string,
  { change, done, typed }: LinkChange,
): Promise<Response> {
  const link = requireOwnedLink(deps, user.account, text)
  const changed = await tryWrite(deps, user, () => change(link))
  if ('done' in changed) return seeOther(`${linkPath(link.code)}?done=${done}`)
  return linkPage(deps, user, { link, query: {}, error: changed.error, ...typed })
}

const DONE = {
  changed:
    'The destination is changed. It takes effect immediately, also for QR codes already printed.',
  saved: 'The properties are saved. They take effect immediately.',
  aliases: 'The aliases are saved. They take effect immediately.',
  paused: 'The link is paused. Its code stays reserved for you.',
  resumed: 'The link is resumed.',
  kept: 'The link is not deleted.',
  unshared: 'The public page is off. Its address no longer works.',
}

interface LinkPageProps {
  link: Link
  query: Query
  error?: AppError
  /** The destination that was refused. */
  url?: string
  /** The alias that was refused. */
  alias?: string
  /** The properties that were refused. */
  sent?: SentProperties
}

async function linkPage(
  deps: DashboardDeps,
  user: CurrentUser,
  props: LinkPageProps,
): Promise<Response> {
  const { link, query, error, url, alias, sent } = props
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
    back: { href: '/app/links', label: 'All links' },
    heading: html``,
    messages: DONE,
    done: query.done,
    error: isFieldError ? undefined : error,
    ...(isFieldError && error && errorOptions(error)),
    main: html`
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
      ${aliasCard(deps, user, { link, typed: alias })}
      ${await linkHits(deps, user, { link, query })}
      ${qrCard(deps, link, query)}
      ${sharingCard(deps, user, link)}`,
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
  return confirmPage(user, {
    title: `Delete ${code}`,
    current: 'links',
    back: { href: path, label: code },
    error,
    warning: html`<strong>${deps.addresses.short(code)} stops working immediately.</strong> You can
      undo this for 30 seconds. Anybody can then claim the code ${code} and choose the destination
      of every link and printed QR code with it.`,
    about: html`
      ${parts.facts([
        ['Destination', url === null ? 'none yet' : destination(url, path)],
        ['Hits', `${parts.count(deps.hits.ofLink(link.id))}, deleted with the link`],
      ])}
      <p>To send visitors elsewhere, <a href="${path}">change the destination</a> instead.</p>`,
    action: `${path}/delete`,
    label: `Delete ${code}`,
    cancel: { label: 'Keep it', href: path },
  })
}
