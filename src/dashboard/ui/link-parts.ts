import { DAY, HOUR, isoTime, MINUTE } from '../../lib/clock.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import type { Link, PublicUrls } from '../../links/link.ts'
import type { DetailedLink } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { sparkline } from './chart.ts'
import { copyButton, count, secretOnce, utcText } from './components.ts'
import { icon } from './icons.ts'

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
    ? { href: start + host + rest, rel: 'noreferrer noopener' }
    : { href: page, title: 'The page of the link has the whole URL' }
  return html`<a ${attributes({ class: 'destination', ...all })}>${shown}</a>`
}

/** A short URL without its scheme, linked to `href`. The button copies the complete URL. */
export function shortUrl(url: string, { id, href }: { id: string; href: string }): Html {
  const shown = html`<data class="code" id="${id}" value="${url}">${bare(url)}</data>`
  const copy = copyButton(id, `short URL ${bare(url)}`)
  return html`<span class="short"><a href="${href}">${shown}</a>${copy}</span>`
}

/** Without the scheme. */
export const bare = (url: string) => url.replace(/^https?:\/\//, '')

/** An address of a link as people read it: without scheme, in Unicode. Default: the shown one. */
export const addressText = (
  addresses: PublicUrls,
  link: Link,
  path: string = link.alias ?? link.code,
): string => bare(addresses.alias(link, '')) + visible(path)

/** A passcode in the only response that shows it. */
export const passcodeOnce = (passcode: string): Html => html`
  ${secretOnce('Passcode', passcode)}
  <p class="hint">Programs need it to change or delete this code through the API. The dashboard does
  not need it. It cannot be shown again or replaced.</p>`

export const linkPath = (code: string): string => `/app/links/${code}`

/** The QR code on a light background, independent of the page’s colors. */
export const qrPicture = (code: string, { size, query = '' }: { size: number; query?: string }) =>
  html`<img class="qr" src="${linkPath(code)}/qr.svg${query}" width="${size}" height="${size}"
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

/**
 * Shortens a URL for a page: ASCII only, so that no character can imitate another, and about 200
 * characters at most. The host is always shown, so that neither a user name before an @ nor a long
 * prefix of the host can be mistaken for it. The cost does not grow with the length of the URL.
 */

/** Characters. */
const SHOWN_MAX = 200
const USER_MAX = 30
const HOST_MAX = 80
/** Longer hosts are not parsed: no DNS name has more characters. */
const HOST_PARSED_MAX = 253

interface ShownUrl {
  /** The scheme, and the user before an @. */
  start: string
  host: string
  /** Path, query and fragment. */
  rest: string
  /** The parts together are the complete URL. */
  isWhole: boolean
}

/** WHATWG URLs skip any number of slashes before the host. */
const PARTS = /^(https?:[/\\]+)(?:([^/?#\\]*)@)?([^/?#\\]*)/i

/**
 * `search`: the URL is cut in front of a match, if it has one that would otherwise be far behind
 * the host.
 */
export function shownUrl(url: string, search = ''): ShownUrl {
  const [before = '', scheme = '', user, sentHost = ''] = PARTS.exec(url) ?? []
  const start = scheme.slice(0, USER_MAX) + (user === undefined ? '' : `${cut(user, USER_MAX)}@`)
  const host = shownHost(sentHost)
  const room = SHOWN_MAX - (start + host).length
  const path = url.slice(before.length)
  const skipped = skippedBefore(path, search)
  const lead = skipped > 0 ? `${path.slice(0, 1)}…` : ''
  const rest = lead + cut(path.slice(skipped), Math.max(0, room - lead.length))
  const isCut = scheme.length > USER_MAX || `${start}${host}${rest}`.includes('…')
  return { start, host, rest, isWhole: !isCut && room >= 0 }
}

/** A match this far behind the host is visible without a cut. */
const NEAR_MAX = 16
/** Characters that are shown in front of a match. */
const CONTEXT = 8

function skippedBefore(path: string, search: string): number {
  const at = search === '' ? -1 : path.toLowerCase().indexOf(search.toLowerCase())
  return at > NEAR_MAX ? at - CONTEXT : 0
}

/** Parts of one text; the first match of a search in the whole text is marked. */
export function markMatch(parts: readonly string[], search: string): Html[] {
  const at = search === '' ? -1 : parts.join('').toLowerCase().indexOf(search.toLowerCase())
  let offset = 0
  return parts.map((part) => {
    const from = Math.max(0, at - offset)
    const to = Math.min(part.length, at + search.length - offset)
    offset += part.length
    if (at < 0 || from >= to) return html`${part}`
    return html`${part.slice(0, from)}<mark>${part.slice(from, to)}</mark>${part.slice(to)}`
  })
}

function shownHost(host: string): string {
  const isAscii = /^[\x21-\x7e]*$/.test(host)
  const parsed =
    isAscii || host.length > HOST_PARSED_MAX ? undefined : URL.parse(`http://${host}`)?.host
  const shown = isAscii ? host : (parsed ?? inAscii(host.slice(-HOST_MAX)))
  return shown.length > HOST_MAX ? `…${shown.slice(-HOST_MAX)}` : shown
}

/** The start of a text in ASCII, with an ellipsis if it was cut. */
function cut(text: string, lengthMax: number): string {
  const encoded = inAscii(text.slice(0, lengthMax + 1))
  if (text.length <= lengthMax && encoded.length <= lengthMax) return encoded
  return `${encoded.slice(0, lengthMax).replace(/%[\da-f]?$/i, '')}…`
}

/** A text in ASCII, like shown URLs. */
const inAscii = (text: string): string =>
  text.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent)

/** One line of the list of links. */

export interface Badge {
  label: string
  kind: 'note' | 'bad' | 'good'
  /** Shown on hover. The link's own page has it too. */
  title?: string | undefined
}

interface LinkRowProps {
  link: DetailedLink
  /** Its paths, without the first slash. */
  aliases: readonly string[]
  shortUrl: string
  badges: readonly Badge[]
  /** Hits per day, today last; absent for a link without any. */
  days: readonly number[] | undefined
  now: number
  /** What is searched for; its first match in each text is marked. */
  search: string
}

export function linkRow(props: LinkRowProps): Html {
  const { link, aliases, shortUrl, badges, days, now, search } = props
  const { code, createdAt, hitCount, properties } = link
  const shown = markMatch([code], search)
  const name = html`<data class="code" id="short-${code}" value="${shortUrl}">${shown}</data>`
  const unit = hitCount === 1 ? 'hit' : 'hits'
  return html`<tr>
<td class="pick"><input type="checkbox" name="code" value="${code}"
aria-label="Select ${code}"></td>
<td class="name"><div><a href="${linkPath(code)}">${name}</a>${badges.map(badge)}
${aboutLink(properties, aliases, search)}</div></td>
<td>${link.url !== null && rowDestination(link.url, search)}</td>
<td class="days">${days && sparkline(days)}</td>
<td class="hits">${count(hitCount)}<span class="unit"> ${unit}</span></td>
<td class="age">${age(createdAt, now)}</td>
<td class="acts">${actions(code, shortUrl)}</td>
</tr>`
}

/** Characters of a text and of each tag, and tags of a row. */
const TITLE_MAX = 60
const TAG_MAX = 20
const TAGS_MAX = 3

/** In one part, which becomes narrower before the code is cut. */
function aboutLink(
  { title, tags }: LinkProperties,
  aliases: readonly string[],
  search: string,
): Html | false {
  if (title === null && tags.length === 0 && aliases.length === 0) return false
  const texts = [aliasToShow(aliases, search), title]
    .filter((text) => typeof text === 'string')
    .map(
      (text) =>
        html`<span class="title">${markMatch([beginningOf(text, TITLE_MAX)], search)}</span>`,
    )
  const shown = tags
    .slice(0, TAGS_MAX)
    .map((tag) => html`<span class="tag">${beginningOf(tag, TAG_MAX)}</span>`)
  const more = tags.length - TAGS_MAX
  return html`<span class="about">${texts}${shown}${
    more > 0 && html`<span class="tag more">+${more}</span>`
  }</span>`
}

/** The first one that is searched for. The link's own page has all. */
function aliasToShow(aliases: readonly string[], search: string): string | undefined {
  const paths = aliases.map((path) => visible(`/${path}`))
  return paths.find((path) => path.toLowerCase().includes(search.toLowerCase())) ?? paths[0]
}

const beginningOf = (text: string, most: number): string => {
  const characters = [...text.slice(0, 2 * most + 2)]
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : text
}

export const badge = ({ label, kind, title }: Badge): Html =>
  html`<span ${attributes({ class: `badge ${kind}`, title })}>${label}</span>`

/** Most destinations begin with `https://`, so it is left out. */
function rowDestination(url: string, search: string): Html {
  const { start, host, rest } = shownUrl(url, search)
  const before = start.replace(/^https:\/\//i, '')
  const [first, bold, last] = markMatch([before, host, rest], inAscii(search))
  return html`<span class="destination">${first}<b>${bold}</b>${last}</span>`
}

const UNITS = [
  { ms: 365 * DAY, name: 'y' },
  { ms: 30 * DAY, name: 'mo' },
  { ms: DAY, name: 'd' },
  { ms: HOUR, name: 'h' },
  { ms: MINUTE, name: 'min' },
]

/** The time since an epoch time in its largest unit. The exact time is in the title. */
function age(epochMs: number, now: number): Html {
  const unit = UNITS.find(({ ms }) => now - epochMs >= ms)
  const text = unit ? `${Math.floor((now - epochMs) / unit.ms)} ${unit.name}` : 'now'
  return html`<time data-age datetime="${isoTime(epochMs)}"
title="${utcText(epochMs)}">${text}</time>`
}

/** The script leaves two tab stops of a row: the link to its page, and Copy. */
function actions(code: string, shortUrl: string): Html {
  const shown = bare(shortUrl)
  return html`<button type="button" class="act" hidden data-copy="short-${code}"
aria-label="Copy short URL ${shown}" title="Copy">${icon('copy')}</button>
<a class="act" href="${shortUrl}" target="_blank" rel="noopener noreferrer"
aria-label="Open ${shown}" title="Open">${icon('external-link')}</a>
<a class="act" href="${linkPath(code)}/qr" data-qr="${code}"
aria-label="QR code of ${code}" title="QR code">${icon('qr-code')}</a>`
}
