import { attributes, type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import type { CurrentUser, PageContext } from '../auth/guard.ts'
import * as parts from './components.ts'
import { typed } from './form.ts'
import { icon } from './icons.ts'
import { bare, destination, linkPath, qrPicture, replacesMain } from './link-parts.ts'
import { badge } from './link-row.ts'
import { badgesOf, type LinkState, tagPath } from './link-table.ts'
import { longTime } from './local-time.ts'

/** The head of a link's page: names, actions, the QR code, the destination. */

/** The title, the short URL and its actions. Without a title, the heading is for screen readers. */
export function linkNames({ deps, user }: PageContext, state: LinkState): Html {
  const { link, properties } = state
  const shortUrl = deps.addresses.short(link.code)
  const heading = attributes({ class: properties.title === null && 'visually-hidden' })
  const host = bare(shortUrl).slice(0, -link.code.length - 1)
  return html`
    <div class="row link-names">
      <h1 ${heading}>${properties.title ?? link.code}</h1>${badgesOf(state).map(badge)}
      ${properties.tags.map((tag) => html`<a class="tag" href="${tagPath(tag)}">${tag}</a>`)}
    </div>
    <p class="link-short"><data id="short-url" class="code"
      value="${shortUrl}">${host}/<wbr>${link.code}</data></p>
    <div class="row link-actions">
      <button type="button" class="button plain" hidden data-copy="short-url"
        aria-label="Copy short URL">${icon('copy')} Copy</button>
      <a class="button plain" target="_blank" rel="noopener noreferrer"
        href="${shortUrl}">${icon('external-link')} Open</a>
      ${menu(user, link, properties)}
    </div>`
}

/** The browser opens and closes it, also without scripts. */
function menu(user: CurrentUser, { code }: Link, properties: LinkProperties): Html {
  const path = linkPath(code)
  const [label, iconName, paused] = properties.paused
    ? (['Resume', 'play', '0'] as const)
    : (['Pause', 'pause', '1'] as const)
  return html`
    <button type="button" class="button plain" popovertarget="link-menu"
      aria-label="More actions">${icon('ellipsis')}</button>
    <div id="link-menu" class="menu" popover>
      ${parts.form(user, `${path}/pause`, [
        parts.hiddenFields({ paused }),
        html`<button class="menu-item">${icon(iconName)} ${label}</button>`,
      ])}
      <a class="menu-item" href="${path}/delete">${icon('trash-2')} Delete…</a>
    </div>`
}

/** Links to the options and downloads below. */
export const smallQr = (code: string): Html =>
  html`<a class="link-qr" href="#qr"
    title="QR code options and downloads">${qrPicture(code, { size: 160 })}</a>`

/** The destination, and the form that changes it. */
export function destinationPart(context: PageContext, link: Link): Html {
  const { user, query, form: sent, refusal } = context
  const url = typed(context, 'url', link.url ?? '')
  const path = linkPath(link.code)
  const isFirst = link.url === null
  const isOpen = query.edit === 'url' || (refusal !== undefined && sent.has('url'))
  const label = isFirst ? 'Set the destination' : 'Change the destination'
  const form = parts.form(
    user,
    path,
    [
      parts.urlField({
        ...url,
        label: 'Destination',
        required: true,
        hint: 'Takes effect immediately. The short URL and its QR code stay the same.',
        extra: { autofocus: url.error !== undefined },
      }),
      parts.button(label, isFirst ? 'primary' : 'plain'),
    ],
    replacesMain(path),
  )
  if (link.url === null) return html`<div class="row link-to">${form}</div>`
  return html`
    <div class="row link-to">
      ${destination(link.url, `${path}?edit=url#field-url`)}
      <details ${attributes({ open: isOpen })}>
        <summary>Edit
          <span class="visually-hidden">the destination</span></summary>
        ${form}
      </details>
    </div>`
}

export interface ZonedState extends LinkState {
  /** The account's time zone. */
  zone: string
}

/** What visitors get now, in the order of the redirect's rules. */
export function visitorsGet({ link, properties, zone, now }: ZonedState): Html {
  const { paused, starts_at, expires_at, max_hits, expired_url, delete_at } = properties
  if (delete_at !== null) return html`Visitors get 404, because the link is deleted.`
  if (link.url === null) {
    return html`Visitors get 404 until you set a destination${paused && ' and resume the link'}.`
  }
  if (paused) return html`Visitors get 404 until you resume the link.`
  if (starts_at !== null && now < starts_at) {
    return html`Visitors get 404 until ${longTime(starts_at, zone)}.`
  }
  const left = max_hits === null ? undefined : max_hits - link.hitCount
  const isOver = expires_at !== null && now >= expires_at
  if (isOver || (left !== undefined && left <= 0)) {
    const since = isOver
      ? `since ${longTime(expires_at, zone)}`
      : `after ${parts.plural(max_hits ?? 0, 'hit')}`
    return expired_url === null
      ? html`Visitors get 410 “Link expired” ${since}.`
      : html`Visitors are redirected to ${destination(expired_url)} ${since}.`
  }
  const ends = [
    expires_at !== null && ` until ${longTime(expires_at, zone)}`,
    left !== undefined && ` for ${left === 1 ? '1 more hit' : `${parts.count(left)} more hits`}`,
  ]
  return html`Visitors are redirected to the destination${ends.filter(Boolean).join(', and')}.`
}
