import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import { ShortenBody } from '../../links/schema.ts'
import { updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import {
  type CurrentUser,
  ownLink,
  type PageContext,
  requireAccount,
  spendWrite,
} from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { formAction, type PageFunction, signedInPages } from '../page-routes.ts'
import { atField } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { confirmPage } from '../ui/confirm.ts'
import { page } from '../ui/layout.ts'
import {
  destinationPart,
  linkNames,
  smallQr,
  visitorsGet,
  type ZonedState,
} from '../ui/link-head.ts'
import { destination, linkPath } from '../ui/link-parts.ts'
import { exactTime } from '../ui/local-time.ts'
import { zoneOf } from '../ui/zone-form.ts'
import { HIT_COUNT_ID, linkHitsSection } from './analytics.ts'
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
export const linkPages = signedInPages({
  'GET /app/links/:code': linkPage,
  'POST /app/links/:code': changeLink('changed', async ({ deps, user, form }, { code }) => {
    await atField('url', () => {
      const { url } = parseWith(ShortenBody, { url: withScheme(form.text('url')) })
      return updateOwnedLink(deps, user.account, { code, url })
    })
  }),
  'POST /app/links/:code/properties': changeLink('saved', saveProperties, (context) =>
    linkPage(context, readProperties(context)),
  ),
  'POST /app/links/:code/aliases': changeLink('aliases', saveAliases),
  'POST /app/links/:code/pause': (context) => {
    const paused = context.form.text('paused') === '1'
    return changeLink(paused ? 'paused' : 'resumed', ({ deps, user }, { code }) =>
      changeProperties(deps, user.account, [code], { paused }),
    )(context)
  },
  'GET /app/links/:code/delete': deletePage,
  'POST /app/links/:code/delete': formAction(deletePage, async (context) => {
    const { deps, user } = context
    const { code } = ownLink(context)
    spendWrite(context)
    await scheduleDeletion(deps, user.account, [code])
    return `/app/links?done=deleted&undo=${code}`
  }),
  'POST /app/links/:code/undo-delete': changeLink('kept', ({ deps, user }, { code }) =>
    undoDeletion(deps, user.account, [code]),
  ),
})

/** A form that changes a link of the account, and then shows its page. */
function changeLink(
  done: keyof typeof DONE,
  change: (context: PageContext, link: Link) => Promise<unknown>,
  shown: PageFunction = linkPage,
): PageFunction {
  return formAction(shown, async (context) => {
    const link = ownLink(context)
    spendWrite(context)
    await change(context, link)
    return `${linkPath(link.code)}?done=${done}`
  })
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

/** `sent`: the properties that were refused. */
async function linkPage(context: PageContext, sent?: SentProperties): Promise<Response> {
  const { deps, user, query } = context
  const link = ownLink(context)
  const properties = deps.properties.propertiesOf(link.id)
  const zone = zoneOf(requireAccount(context))
  const disabled = deps.moderation.reads.find(link.code)?.reason
  const counted = { ...link, hitCount: deps.hits.ofLink(link.id) }
  const state = { link: counted, properties, zone, disabled, now: deps.clock() }
  return page(context, {
    title: properties.title ?? link.code,
    back: { href: '/app/links', label: 'All links' },
    heading: html``,
    messages: DONE,
    main: html`
      ${deletionNotice(user, state)}
      ${stoppedNotice(deps, state)}
      <section class="card link-head">
        ${linkNames(context, state)}
        ${smallQr(link.code)}
        ${destinationPart(context, link)}
        ${factsLine(deps, state)}
      </section>
      ${await propertiesForm(context, state, sent)}
      ${aliasCard(context, link)}
      ${await linkHitsSection(context, link)}
      ${qrCard(deps, link, query)}
      ${sharingCard(context, link)}`,
  })
}

function deletionNotice(
  user: CurrentUser,
  { link: { code }, properties: { delete_at: deleteAt }, zone, now }: ZonedState,
): Html | false {
  if (deleteAt === null) return false
  return parts.notice(
    'note',
    html`<p><strong>This link will be deleted in ${parts.countdown(deleteAt, now)},</strong> at
        ${exactTime(deleteAt, zone)}. It has stopped working.</p>
      ${parts.buttonForm(user, `${linkPath(code)}/undo-delete`, 'Undo')}`,
  )
}

const isBlocked = ({ blocklist }: DashboardDeps, url: string | null): boolean =>
  url !== null && blocklist.isBlocked(new URL(url))

/** Why the link answers 410, if it does. */
function stoppedNotice(deps: DashboardDeps, { link, disabled }: ZonedState): Html | false {
  if (disabled !== undefined) {
    return parts.notice(
      'bad',
      html`<p><strong>The operator of this service has disabled this link.</strong> Its visitors
        get “Link disabled”. The reason: ${disabled}</p>`,
    )
  }
  if (!isBlocked(deps, link.url)) return false
  return parts.notice(
    'bad',
    html`<p><strong>This link does not redirect:</strong> the host of its destination is on the
      abuse blocklist. Its visitors get “Link disabled”.</p>`,
  )
}

function factsLine(deps: DashboardDeps, state: ZonedState): Html {
  const { link, disabled, properties } = state
  const isStopped = disabled !== undefined || isBlocked(deps, link.url)
  const expired_url = isBlocked(deps, properties.expired_url) ? null : properties.expired_url
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

function deletePage(context: PageContext): Response {
  const { deps } = context
  const link = ownLink(context)
  const { code, url } = link
  const path = linkPath(code)
  return confirmPage(context, {
    title: `Delete ${code}`,
    back: { href: path, label: code },
    warning: html`<strong>${deps.addresses.short(code)} stops working immediately.</strong> You can
      undo this for 30 seconds. Anybody can then claim the code ${code} and choose the destination
      of every link and printed QR code with it.`,
    about: html`
      ${parts.facts([
        ['Destination', url === null ? 'none yet' : destination(url, path)],
        ['Hits', `${parts.count(deps.hits.ofLink(link.id))}, deleted with the link`],
      ])}
      <p>To send visitors elsewhere, <a href="${path}">change the destination</a> instead.</p>`,
    label: `Delete ${code}`,
    cancel: { label: 'Keep it', href: path },
  })
}
