import { parseWith } from '../../http/body.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import { ALIASES_MAX, decodePath } from '../../links/aliases.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import type { Link } from '../../links/link.ts'
import { changeLink, changeProperties } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { AliasPath, ShortenBody } from '../../links/schema.ts'
import { updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, ownLink, type PageContext, spendWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { formAction, type PageFunction, signedInPages } from '../page-routes.ts'
import { atField } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { icon } from '../ui/icons.ts'
import { confirmPage, page } from '../ui/layout.ts'
import { badge, bare, destination, linkPath, qrPicture, replacesMain } from '../ui/link-parts.ts'
import { badgesOf, type LinkState, tagPath } from '../ui/link-table.ts'
import { exactTime, longTime } from '../ui/local-time.ts'
import { HIT_COUNT_ID, linkHitsSection } from './analytics.ts'
import { propertiesForm, saveProperties } from './link-properties.ts'
import { qrCard } from './link-qr.ts'
import { sharingCard } from './shared.ts'

/** One link: its short URL, destination, properties, hits, QR code and deletion. */
export const linkPages = signedInPages({
  'GET /app/links/:code': linkPage,
  'POST /app/links/:code': linkForm('changed', async ({ deps, user, form }, { code }) => {
    await atField('url', () => {
      const { url } = parseWith(ShortenBody, { url: withScheme(form.text('url')) })
      return updateOwnedLink(deps, user.account, { code, url })
    })
  }),
  'POST /app/links/:code/properties': linkForm('saved', saveProperties),
  'POST /app/links/:code/aliases': linkForm('aliases', saveAliases),
  'POST /app/links/:code/pause': (context) => {
    const paused = context.form.text('paused') === '1'
    return linkForm(paused ? 'paused' : 'resumed', ({ deps, user }, { code }) =>
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
  'POST /app/links/:code/undo-delete': linkForm('kept', ({ deps, user }, { code }) =>
    undoDeletion(deps, user.account, [code]),
  ),
})

/** A form that changes a link of the account, and then shows its page. */
function linkForm(
  done: keyof typeof DONE,
  change: (context: PageContext, link: Link) => Promise<unknown>,
): PageFunction {
  return formAction(linkPage, async (context) => {
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

async function linkPage(context: PageContext): Promise<Response> {
  const { deps, user, query } = context
  const link = ownLink(context)
  const properties = deps.properties.propertiesOf(link.id)
  const { zone } = user
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
      ${await propertiesForm(context, link, properties)}
      ${aliasCard(context, link)}
      ${await linkHitsSection(context)}
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
  if (disabled === undefined && !isBlocked(deps, link.url)) return false
  const reason =
    disabled === undefined
      ? html`<strong>This link does not redirect:</strong> the host of its destination is on the
          abuse blocklist. Its visitors get “Link disabled”.`
      : html`<strong>The operator of this service has disabled this link.</strong> Its visitors get
          “Link disabled”. The reason: ${disabled}`
  return parts.notice('bad', html`<p>${reason}</p>`)
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
    warning: html`<strong>${deps.addresses.short(link)} stops working immediately.</strong> You can
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

/** The head of a link's page: names, actions, the QR code, the destination. */

/** The title, the short URL and its actions. Without a title, the heading is for screen readers. */
function linkNames({ deps, user }: PageContext, state: LinkState): Html {
  const { link, properties } = state
  const shortUrl = deps.addresses.short(link)
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
const smallQr = (code: string): Html =>
  html`<a class="link-qr" href="#qr"
    title="QR code options and downloads">${qrPicture(code, { size: 160 })}</a>`

/** The destination, and the form that changes it. */
function destinationPart(context: PageContext, link: Link): Html {
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

interface ZonedState extends LinkState {
  /** The account's time zone. */
  zone: string
}

/** What visitors get now, in the order of the redirect's rules. */
function visitorsGet({ link, properties, zone, now }: ZonedState): Html {
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

/** Adds the alias in `add`, or removes the one in `remove`. Throws the refusals of the API. */
async function saveAliases(context: PageContext, { code }: Link): Promise<void> {
  const { deps, user, form } = context
  const added = form.text('add')
  const aliases = { add: added === '' ? [] : [pathOf(deps, added)], remove: [form.text('remove')] }
  await changeLink(deps, user.account, code, { aliases })
}

/** A path, or the whole short URL that is printed somewhere. */
function pathOf({ baseUrl }: DashboardDeps, typed: string): string {
  const path = typed.startsWith(`${baseUrl}/`) ? typed.slice(baseUrl.length) : typed
  const decoded = path === typed ? path : (decodePath(path) ?? path)
  return parseWith(AliasPath, decoded.replace(/^\//, ''))
}

/** Absent for an account that cannot have aliases. */
function aliasCard(context: PageContext, link: Link): Html | false {
  const { deps, user } = context
  const { aliases, aliasRules, baseUrl } = deps
  const paths = aliases.ofLink(link.id)
  const mayAdd = aliasRules.mayAdd(user.account.id)
  if (paths.length === 0 && !mayAdd) return false
  const action = `${linkPath(link.code)}/aliases`
  return parts.card(
    'Aliases',
    html`<p class="hint">Further addresses that lead here, for example printed ones of another
        service. Letter case matters.</p>
      ${paths.map(
        (path) => html`<div class="row">
          <code>${baseUrl}/${visible(path)}</code>
          ${parts.buttonForm(user, action, 'Remove', {
            values: { remove: path },
            title: `Remove ${path}`,
          })}
        </div>`,
      )}
      ${
        mayAdd &&
        paths.length < ALIASES_MAX &&
        parts.form(user, action, [
          parts.field({
            ...typed(context, 'add'),
            label: 'New alias',
            autocomplete: 'off',
            extra: { maxlength: 1000, placeholder: 'spring-sale', spellcheck: 'false' },
          }),
          parts.button('Add', 'plain'),
        ])
      }`,
  )
}
