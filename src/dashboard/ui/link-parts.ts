import { readableHost } from '../../addresses/shown-host.ts'
import type { PublicUrls } from '../../addresses/urls.ts'
import type { DeadDestination } from '../../checks/store.ts'
import { isoTime } from '../../lib/clock.ts'
import { toCode } from '../../lib/code.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import { decodePercent } from '../../lib/percent.ts'
import type { CountedLink } from '../../links/link.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import type { CurrentUser } from '../auth/guard.ts'
import { copyButton, secretOnce } from './components.ts'
import { icon } from './icons.ts'
import { shownUrl } from './shown-url.ts'

/** Parts of the pages about links. */

/**
 * A destination as a link that sends no referrer, with its host in bold. One that is too long to be
 * shown links to `page` instead, which has the whole URL.
 */
export function destination(url: string, page?: string): Html {
  const { start, host, rest, isWhole } = shownUrl(url)
  const shown = html`${start}<b>${host}</b>${rest}`
  if (!isWhole && page === undefined) return html`<span class="destination">${shown}</span>`
  const all = isWhole
    ? { href: asciiUrl(url), rel: 'noreferrer noopener' }
    : { href: page, title: 'The page of the link has the whole URL' }
  return html`<a ${attributes({ class: 'destination', ...all })}>${shown}</a>`
}

/** The same URL without characters that could imitate others. */
const asciiUrl = (url: string): string =>
  /^[\x21-\x7e]+$/.test(url) ? url : (URL.parse(url)?.href ?? '')

/** A short URL without its scheme, linked to `href`. The button copies the complete URL. */
export function shortUrl(url: string, { id, href }: { id: string; href: string }): Html {
  const shown = html`<data class="code" id="${id}" value="${url}">${bare(url)}</data>`
  const copy = copyButton(id, `short URL ${bare(url)}`)
  return html`<span class="short"><a href="${href}">${shown}</a>${copy}</span>`
}

/** The URL without its scheme. */
export const bare = (url: string) => url.replace(/^https?:\/\//, '')

/** A short URL as people read it: without scheme, in Unicode. */
export function addressText(url: string): string {
  const text = bare(url)
  const slash = text.indexOf('/')
  const path = text.slice(slash + 1)
  return `${readableHost(text.slice(0, slash))}/${visible(decodePercent(path) ?? path)}`
}

/** Characters of a field for a path: a short URL with the longest one, encoded. */
export const PATH_MAX = 1000

/** The domains of a select; an empty value is the primary one. */
export const domainChoices = (
  { addresses }: { addresses: PublicUrls },
  hosts: readonly string[],
): { value: string; label: string }[] =>
  ['', ...hosts].map((value) => ({
    value,
    label: readableHost(addresses.shownHost(addresses.idOf(value))),
  }))

/** A passcode in the only response that shows it. */
export const passcodeOnce = (passcode: string): Html => html`
  ${secretOnce('Passcode', passcode)}
  <p class="hint">Programs need it to change or delete this code through the API. The dashboard does
  not need it. It cannot be shown again or replaced.</p>`

/** What visitors see who ask where the link leads. */
export const previewLink = (address: string, label = 'Preview'): Html =>
  html`<a class="hint" href="${address}+" target="_blank" rel="noopener noreferrer">${label}</a>`

export const linkPath = (code: string): string => `/app/links/${code}`

/** The QR code on a light background, independent of the page’s colors. */
export const qrPicture = (code: string, size: number) =>
  html`<img class="qr" src="${linkPath(code)}/qr.svg" width="${size}" height="${size}"
    alt="QR code of ${code}">`

/** Attributes of a form whose response replaces `#main`. */
export const replacesMain = (path: string) => ({
  'hx-post': path,
  'hx-target': '#main',
  'hx-select': '#main',
  'hx-swap': 'outerHTML show:window:top',
  // A second click must not replace the response with the passcode.
  'hx-sync': 'this:drop',
})

/** Closes a message or a dialog. Hidden without scripts. */
export const closeButton = (): Html => html`
  <button type="button" class="act close" hidden data-needs-script data-close
    aria-label="Close">${icon('x')}</button>`

/** Why an account can have codes only, and what helps the person. */
export function noOtherPaths({ person }: Pick<CurrentUser, 'person'>, path: string): string {
  const near = path.replace(/[^A-Za-z0-9]/g, '')
  const rule = `Use 6 to 20 letters and digits${toCode(near) ? `, such as ${near}` : ''}`
  return person.isOwner
    ? `${rule}. Other paths are for accounts of owners: ALIASES=all gives them to every account.`
    : `${rule}, or ask an owner of this service to allow other paths.`
}

export interface Badge {
  label: string
  kind: 'note' | 'bad' | 'good'
  /** Shown on hover. The link's own page has it too. */
  title?: string | undefined
}

export const badge = ({ label, kind, title }: Badge): Html =>
  html`<span ${attributes({ class: `badge ${kind}`, title })}>${label}</span>`

const DEAD_TEXTS: Readonly<Record<string, string>> = {
  no_such_name: 'The host of its destination does not exist',
  refused: 'The host of its destination refuses connections',
  bad_certificate: 'The host of its destination has no valid certificate',
}

/** What the checks of a destination have found. */
export function deadText({ status, failingSince }: DeadDestination): string {
  const found = DEAD_TEXTS[status] ?? `Its destination answers ${status}`
  return `${found}, since ${isoTime(failingSince).slice(0, 10)}`
}

export interface LinkState {
  link: CountedLink
  properties: LinkProperties
  /** Why the operator disabled the code. */
  disabled: string | undefined
  /** Absent if its destination answers, as far as is known. */
  dead?: DeadDestination | undefined
  /** The host of the destination is on the blocklist. */
  isBlocked: boolean
  now: number
}

/** Why visitors do not reach the destination, or not at once. */
export function badgesOf(state: LinkState): Badge[] {
  const { link, properties, disabled, dead, isBlocked, now } = state
  const { paused, starts_at, expires_at, max_hits, delete_at } = properties
  const isOver =
    (expires_at !== null && expires_at <= now) || (max_hits !== null && link.hitCount >= max_hits)
  const title = disabled && `By the operator: ${disabled}`
  const badges: (Badge | false)[] = [
    disabled !== undefined && { label: 'Disabled', kind: 'bad', title },
    isBlocked && { label: 'Blocked', kind: 'bad', title: 'Its destination is on the blocklist' },
    delete_at !== null && { label: 'Deleted', kind: 'bad' },
    dead !== undefined && { label: 'Does not answer', kind: 'bad', title: deadText(dead) },
    link.url === null && { label: 'No destination', kind: 'note' },
    paused && { label: 'Paused', kind: 'note' },
    properties.password !== null && { label: 'Password', kind: 'note' },
    isOver && { label: 'Expired', kind: 'note' },
    starts_at !== null && starts_at > now && { label: 'Not started', kind: 'note' },
  ]
  return badges.filter((badge) => badge !== false)
}
