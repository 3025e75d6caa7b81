import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { type CurrentUser, ownLink, type PageContext, spendWrite } from '../auth/guard.ts'
import { historyCard, putBack } from '../cards/history.ts'
import { HIT_COUNT_ID, linkSections } from '../cards/hits.ts'
import {
  destinationCards,
  hasDestinationsPage,
  saveDestinations,
} from '../cards/link-destinations.ts'
import { qrCard, qrFile } from '../cards/link-qr.ts'
import { saveSettings, settingsCards } from '../cards/link-settings.ts'
import type { DashboardDeps } from '../deps.ts'
import { editor, signedInPages, viewer } from '../page-routes.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { icon } from '../ui/icons.ts'
import { confirmPage, page } from '../ui/layout.ts'
import {
  addressText,
  badge,
  badgesOf,
  deadText,
  destination,
  type LinkState,
  linkPath,
  previewLink,
  qrPicture,
} from '../ui/link-parts.ts'
import { tagPath } from '../ui/link-table.ts'
import { exactTime, longTime } from '../ui/local-time.ts'

/** One link: its numbers, its QR code and its settings, each on a page of its own. */
export const linkPages = signedInPages({
  'GET /app/links/:code': viewer((context) => linkPage(context, 'overview')),
  'GET /app/links/:code/qr': viewer((context) => linkPage(context, 'qr')),
  'GET /app/links/:code/qr.png': viewer((context) => qrFile(context, 'png')),
  'GET /app/links/:code/qr.svg': viewer((context) => qrFile(context, 'svg')),
  'GET /app/links/:code/qr.pdf': viewer((context) => qrFile(context, 'pdf')),
  'GET /app/links/:code/destinations': viewer((context) => linkPage(context, 'destinations')),
  'POST /app/links/:code/destinations': {
    role: 'editor',
    ...linkForm('destinations', saveDestinations, () => '/destinations?done=ruled'),
  },
  'GET /app/links/:code/settings': editor((context) => linkPage(context, 'settings')),
  'POST /app/links/:code/settings': {
    role: 'editor',
    // A note and two URLs of the longest kind.
    bulk: true,
    ...linkForm('settings', saveSettings, () => '/settings?done=saved'),
  },
  'POST /app/links/:code/pause': {
    role: 'editor',
    ...linkForm(
      'overview',
      ({ deps, user, form }, { code }) =>
        changeProperties(deps, user.account, [code], { paused: isToPause(form) }),
      ({ form }) => `?done=${isToPause(form) ? 'paused' : 'resumed'}`,
    ),
  },
  'GET /app/links/:code/history': viewer((context) => linkPage(context, 'history')),
  'POST /app/links/:code/history': {
    role: 'editor',
    ...linkForm('history', putBack, () => '/history?done=put-back'),
  },
  'GET /app/links/:code/delete': editor(deletePage),
  'POST /app/links/:code/delete': editor(async (context) => {
    const { deps, user } = context
    const { code } = ownLink(context)
    spendWrite(context)
    await scheduleDeletion(deps, user.account, [code])
    return `/app/links?done=deleted&undo=${code}`
  }, deletePage),
  'POST /app/links/:code/undo-delete': {
    role: 'editor',
    ...linkForm(
      'overview',
      ({ deps, user }, { code }) => undoDeletion(deps, user.account, [code]),
      () => '?done=undone',
    ),
  },
})

type Tab = 'overview' | 'qr' | 'destinations' | 'history' | 'settings'

/** A form that changes a link of the account. `next`: the end of the path of the page after it. */
function linkForm(
  tab: Tab,
  change: (context: PageContext, link: Link) => Promise<unknown>,
  next: (context: PageContext) => string,
) {
  return {
    page: (context: PageContext) => linkPage(context, tab),
    run: async (context: PageContext) => {
      const link = ownLink(context)
      spendWrite(context)
      await change(context, link)
      return linkPath(link.code) + next(context)
    },
  }
}

const isToPause = (form: Form): boolean => form.text('paused') === '1'

const DONE = {
  paused: 'The link is paused. Its code stays reserved for you.',
  resumed: 'The link is resumed.',
  undone: 'The link is not deleted.',
  'put-back': 'The former destination is back. It takes effect immediately.',
  ruled: 'Saved. It takes effect immediately, also for printed QR codes.',
}

const TABS: readonly { tab: Tab; label: string; path: string }[] = [
  { tab: 'overview', label: 'Overview', path: '' },
  { tab: 'qr', label: 'QR code', path: '/qr' },
  { tab: 'destinations', label: 'Destinations', path: '/destinations' },
  { tab: 'history', label: 'History', path: '/history' },
  { tab: 'settings', label: 'Settings', path: '/settings' },
]

async function linkPage(context: PageContext, tab: Tab): Promise<Response> {
  const { deps, user } = context
  const link = ownLink(context)
  const properties = deps.data.properties.propertiesOf(link.id)
  const disabled = deps.data.moderation.findByCode(link.code)?.reason
  const counted = { ...link, hitCount: deps.hits.ofLink(link.id) }
  const dead = deps.checks?.findDead([link.id]).get(link.id)
  const about = { disabled, dead, isBlocked: isBlocked(deps, link.url), now: deps.clock() }
  const state = { link: counted, properties, zone: user.zone, ...about }
  const path = linkPath(link.code)
  const tabs = TABS.filter(
    (one) =>
      one.tab !== 'destinations' || hasDestinationsPage(context, link, properties.destinations),
  ).map((one) => {
    const all = { href: path + one.path, 'aria-current': one.tab === tab ? 'page' : undefined }
    return parts.offer(user, all.href, html`<li><a ${attributes(all)}>${one.label}</a></li>`)
  })
  return page(context, {
    title: properties.title ?? addressText(deps.addresses.display(link)),
    back: { href: '/app/links', label: 'All links' },
    heading: html`${linkHead(context, state)}
      <nav class="tabs" aria-label="Pages of this link"><ul>${tabs}</ul></nav>`,
    messages: DONE,
    main: html`
      ${deletionNotice(user, state)}
      ${stoppedNotice(deps, state)}
      ${deadNotice(user, state)}
      ${await contentOf(context, tab, state)}`,
  })
}

async function contentOf(context: PageContext, tab: Tab, state: ZonedState): Promise<Value> {
  const { link, properties } = state
  if (tab === 'qr') return qrCard(context, link)
  if (tab === 'destinations') return destinationCards(context, link, properties.destinations)
  if (tab === 'settings') return settingsCards(context, link, properties)
  if (tab === 'history') return historyCard(context, link)
  const { hits, visitors } = await linkSections(context)
  return html`
    <div class="link-overview">
      ${hits}
      <aside class="card" aria-label="QR code and destination">
        <a class="link-qr" href="${linkPath(link.code)}/qr"
          title="QR code options and downloads">${qrPicture(link.code, 160)}</a>
        <p class="link-labels"><a href="/app/print?codes=${link.code}">Print labels</a></p>
        ${factsPart(context, state)}
      </aside>
    </div>
    ${visitors}`
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

const whyBlocked = ({ blocklist }: DashboardDeps, url: string | null): string =>
  url !== null && blocklist.isOwn(new URL(url))
    ? 'its destination is an address of this service itself'
    : 'the host of its destination is on the abuse blocklist'

/** Why the link answers 410, if it does. */
function stoppedNotice(deps: DashboardDeps, state: ZonedState): Html | false {
  const { link, disabled } = state
  if (disabled === undefined && !state.isBlocked) return false
  const reason =
    disabled === undefined
      ? html`<strong>This link does not redirect:</strong> ${whyBlocked(deps, link.url)}. Its
          visitors get “Link disabled”.`
      : html`<strong>The operator of this service has disabled this link.</strong> Its visitors get
          “Link disabled”. The reason: ${disabled}`
  return parts.notice('bad', html`<p>${reason}</p>`)
}

/** The destination did not answer for days. Visitors are redirected as before. */
function deadNotice(user: CurrentUser, { link, dead }: ZonedState): Html | false {
  if (!dead) return false
  const settings = `${linkPath(link.code)}/settings`
  const change = parts.offer(
    user,
    settings,
    html` <a href="${settings}#field-url">Change the destination</a>`,
  )
  return parts.notice('bad', html`<p><strong>${deadText(dead)}.</strong>${change}</p>`)
}

/** What visitors get, the destination, and facts about the link. */
function factsPart({ deps, user }: PageContext, state: ZonedState): Html {
  const { link, disabled, properties } = state
  const path = linkPath(link.code)
  const settings = `${path}/settings`
  const { length: count } = properties.destinations
  const whole = user.may('GET', settings) ? `${settings}#field-url` : undefined
  const isStopped = disabled !== undefined || state.isBlocked
  const expired_url = isBlocked(deps, properties.expired_url) ? null : properties.expired_url
  const answer = visitorsGet({ ...state, properties: { ...properties, expired_url } })
  return html`<div class="link-facts">
    ${link.url !== null && destination(link.url, whole)}
    ${!isStopped && html`<p class="hint">${answer}</p>`}
    ${parts.facts([
      ['Hits', html`<span id="${HIT_COUNT_ID}">${parts.count(link.hitCount)}</span>`],
      ['Code', html`<span class="code">${link.code}</span>`],
      ['Created', parts.time(link.createdAt)],
      count > 0 && [
        'By rule',
        html`<a href="${`${path}/destinations`}">${parts.plural(count, 'destination')}</a>`,
      ],
    ])}
  </div>`
}

function deletePage(context: PageContext): Response {
  const { deps } = context
  const link = ownLink(context)
  const { code, url } = link
  const path = linkPath(code)
  const address = addressText(deps.addresses.display(link))
  return confirmPage(context, {
    title: `Delete ${address}`,
    back: { href: path, label: address },
    warning: html`<strong>${address} stops working immediately.</strong> You can undo this for 30
      seconds. Anybody can then claim the code ${code} and choose the destination
      of every link and printed QR code with it.`,
    about: html`
      ${parts.facts([
        ['Destination', url === null ? 'none yet' : destination(url, path)],
        ['Hits', `${parts.count(deps.hits.ofLink(link.id))}, deleted with the link`],
      ])}
      <p>To send visitors elsewhere, <a href="${path}/settings#field-url">change the destination</a>
        instead.</p>`,
    label: `Delete ${code}`,
    cancel: { label: 'Keep it', href: path },
  })
}

/** The title, the displayed address, the state, and what one does most often with a link. */
function linkHead({ deps, user }: PageContext, state: LinkState): Html {
  const { link, properties } = state
  const address = deps.addresses.display(link)
  const shown = addressText(deps.addresses.display(link))
  const path = linkPath(link.code)
  const tags = properties.tags.map((tag) => html`<a class="tag" href="${tagPath(tag)}">${tag}</a>`)
  return html`
    <header class="link-head">
      <div>
        <h1>${properties.title ?? shown}</h1>
        <p class="row link-short">
          <a href="${address}" target="_blank" rel="noopener noreferrer"><data id="short-url"
            class="code" value="${address}">${shown}</data></a>
          ${previewLink(address)}
          ${badgesOf(state).map(badge)} ${tags}
        </p>
      </div>
      <div class="row link-actions">
        <button type="button" class="button primary" hidden data-copy="short-url"
          aria-label="Copy the short URL">${icon('copy')} Copy</button>
        <a class="button plain" href="${path}/qr">${icon('qr-code')} QR</a>
        ${parts.offer(user, `${path}/settings`, [
          html`<a class="button plain"
            href="${path}/settings#field-url">${icon('pencil')} Edit</a>`,
          menu(user, link, properties),
        ])}
      </div>
    </header>`
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

interface ZonedState extends LinkState {
  /** The account's time zone. */
  zone: string
}

/** What visitors get now, in the order of the redirect's rules. */
function visitorsGet({ link, properties, zone, now }: ZonedState): Html {
  const { paused, starts_at, expires_at, max_hits, expired_url, delete_at, password } = properties
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
  const first = password !== null && ' when they have entered the password'
  const end = ends.filter(Boolean).join(', and')
  return html`Visitors are redirected to the destination${first}${end}.`
}
