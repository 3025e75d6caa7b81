import { DAY, HOUR, isoTime, MINUTE } from '../../lib/clock.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import type { DetailedLink } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { sparkline } from './chart.ts'
import { count, utcText } from './components.ts'
import { icon } from './icons.ts'
import { bare, inAscii, linkPath, markMatch, shownUrl } from './link-parts.ts'

/** One line of the list of links. */

export interface Badge {
  label: string
  kind: 'note' | 'bad'
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

/** Characters of a text and of each tag, and tags of a row: a page has a limit of bytes. */
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
    .map((text) => html`<span class="title">${markMatch([cut(text, TITLE_MAX)], search)}</span>`)
  const shown = tags
    .slice(0, TAGS_MAX)
    .map((tag) => html`<span class="tag">${cut(tag, TAG_MAX)}</span>`)
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

const cut = (text: string, most: number): string => {
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
<a class="act" href="${linkPath(code)}#qr" data-qr="${code}"
aria-label="QR code of ${code}" title="QR code">${icon('qr-code')}</a>`
}
