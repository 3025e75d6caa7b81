import { type Address, isOnPrimary } from '../../addresses/address.ts'
import { displayedDomain } from '../../addresses/names.ts'
import type { PublicUrls } from '../../addresses/urls.ts'
import { DAY, HOUR, isoTime, MINUTE } from '../../lib/clock.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import type { DetailedLink } from '../../links/properties.ts'
import { sparkline } from './chart.ts'
import { count } from './components.ts'
import { repeatedIcon } from './icons.ts'
import { addressText, type Badge, badge, linkPath } from './link-parts.ts'
import { markMatch, readable, shownUrl } from './shown-url.ts'

/** One row of the list of links. */

interface LinkRowProps {
  link: DetailedLink
  /** Its paths, without the first slash. */
  aliases: readonly Address[]
  addresses: PublicUrls
  badges: readonly Badge[]
  /** Hits per day, today last; absent for a link without any. */
  days: readonly number[] | undefined
  now: number
  /** What is searched for; its first match in each text is marked. */
  search: string
}

/** The title is the name of a link, or else the address that people see. */
export function linkRow(props: LinkRowProps): Html {
  const { link, addresses, badges, days, now, search } = props
  const { code, url, createdAt, hitCount, properties } = link
  const address = addressText(addresses.display(link))
  const { title } = properties
  const name =
    title === null
      ? addressData(props, address)
      : html`<span class="title">${markMatch([beginningOf(title, TITLE_MAX)], search)}</span>`
  const unit = hitCount === 1 ? 'hit' : 'hits'
  return html`<tr ${attributes({ class: title !== null && 'titled' })}>
<td class="pick"><input type="checkbox" name="code" value="${code}"
aria-label="Select ${address}"></td>
<td class="name"><div class="main"><a href="${linkPath(code)}">${name}</a>${badges.map(badge)}</div>
${aboutLink(props, address)}</td>
<td class="to">${url !== null && rowDestination(url, search)}</td>
<td class="days">${days && sparkline(days)}</td>
<td class="hits">${count(hitCount)}<span class="unit"> ${unit}</span></td>
<td class="age">${age(createdAt, now)}</td>
<td class="acts">${actions(props, address)}</td>
</tr>`
}

/** Characters of a title and of each tag, and tags of a row. */
const TITLE_MAX = 80
const TAG_MAX = 24
const TAGS_MAX = 4

/**
 * The address, of which the script copies the value. The primary host has the least room: phones do
 * not show it.
 */
function addressData({ link, addresses, search }: LinkRowProps, address: string): Html {
  const path = address.indexOf('/') + 1
  const [host, rest] = markMatch([address.slice(0, path), address.slice(path)], search)
  const isPrimary = isOnPrimary({ domainId: displayedDomain(link) })
  const shown = html`<span class="${isPrimary ? 'host' : 'other-host'}">${host}</span>${rest}`
  return html`<data class="code" value="${addresses.display(link)}">${shown}</data>`
}

/** The second line: the address of a link with a title, other paths that are found, and tags. */
function aboutLink(props: LinkRowProps, address: string): Html | false {
  const { link, search } = props
  const { title, tags } = link.properties
  const found = foundPath(props)
  if (title === null && tags.length === 0 && found === undefined) return false
  const shown = tags
    .slice(0, TAGS_MAX)
    .map((tag) => html`<span class="tag">${beginningOf(tag, TAG_MAX)}</span>`)
  const more = tags.length - TAGS_MAX
  // The script adds the tags for which the line has no room to the number.
  const rest = html`<span class="tag more">${more > 0 && `+${more}`}</span>`
  return html`<div class="about">${title !== null && addressData(props, address)}
${found !== undefined && html`<span class="found">${markMatch([found], search)}</span>`}
${tags.length > 0 && html`<span class="tags">${shown}${rest}</span>`}</div>`
}

/** A path of the link that is searched for and is not the displayed one: an alias or the code. */
function foundPath({ link, aliases, addresses, search }: LinkRowProps): string | undefined {
  if (search === '') return undefined
  const code = link.typedCode ?? link.code
  const shown = link.alias === null ? code : addresses.textOf(link.alias)
  const others = [code, ...aliases.map(addresses.textOf)].filter((path) => path !== shown)
  return others
    .map((path) => visible(`/${path}`))
    .find((path) => path.toLowerCase().includes(search.toLowerCase()))
}

const beginningOf = (text: string, most: number): string => {
  const characters = [...text.slice(0, 2 * most + 2)]
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : text
}

/** Most destinations begin with `https://`, so it is left out. */
function rowDestination(url: string, search: string): Html {
  const { start, host, rest } = shownUrl(url, search)
  const before = start.replace(/^https:\/\//i, '')
  const [first, bold, last] = markMatch([before, host, rest], readable(search))
  return html`<span class="destination">${first}<b>${bold}</b>${last}</span>`
}

const UNITS = [
  { ms: 365 * DAY, name: 'y' },
  { ms: 30 * DAY, name: 'mo' },
  { ms: DAY, name: 'd' },
  { ms: HOUR, name: 'h' },
  { ms: MINUTE, name: 'min' },
]

/** The time since an epoch time in its largest unit. The script adds the exact time. */
function age(epochMs: number, now: number): Html {
  const unit = UNITS.find(({ ms }) => now - epochMs >= ms)
  const text = unit ? `${Math.floor((now - epochMs) / unit.ms)} ${unit.name}` : 'now'
  const minute = isoTime(epochMs).replace(/:\d\d\.\d+/, '')
  return html`<time data-age datetime="${minute}">${text}</time>`
}

/**
 * The script names the button, and leaves two tab stops of a row: the link to its page, and Copy.
 */
function actions({ link, addresses }: LinkRowProps, address: string): Html {
  const { code } = link
  return html`<button type="button" class="act" hidden data-copy
title="Copy">${repeatedIcon('copy')}</button>
<a class="act open" href="${addresses.display(link)}" target="_blank" rel="noopener noreferrer"
aria-label="Open ${address}" title="Open">${repeatedIcon('external-link')}</a>
<a class="act" href="${linkPath(code)}/qr" data-qr
aria-label="QR code of ${address}" title="QR code">${repeatedIcon('qr-code')}</a>`
}
