import { toCode } from '../../lib/code.ts'
import { type Html, html, type Value } from '../../lib/html.ts'
import type { CurrentUser, PageContext } from '../auth/guard.ts'
import {
  type Created,
  createdToast,
  createForm,
  createLink,
  pathStatus,
} from '../cards/create-link.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { errorOptions, htmlResponse, isTemporary } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { iconSymbols } from '../ui/icons.ts'
import { PAGE_SIZE, page, wantsFragment } from '../ui/layout.ts'
import { addressText, closeButton, linkPath } from '../ui/link-parts.ts'
import {
  currentTableQuery,
  listFragment,
  listSection,
  loadTable,
  parseTableQuery,
} from '../ui/link-table.ts'

/** The account's links: the form that creates one, and the list. */
export const linksPages = signedInPages({
  'GET /app/links': {
    role: 'viewer',
    offers: [{ label: 'Links', place: 'navigation' }],
    run: async (context) => {
      if (!wantsPart(context, 'list')) return linksPage(context)
      const query = parseTableQuery(context.query)
      const { markup, path } = listFragment(await loadTable(context, query))
      return htmlResponse(markup, { headers: { 'hx-replace-url': path } })
    },
  },
  'POST /app/links': {
    role: 'editor',
    offers: [{ label: 'Create a link', href: '/app/links?url=', words: 'new shorten' }],
    page: (context) => {
      const { refusal } = context
      if (!refusal || !wantsPart(context, 'create')) return linksPage(context)
      // Browsers report other statuses of scripts' requests in the console.
      const options = isTemporary(refusal) ? errorOptions(refusal) : {}
      return htmlResponse(createForm(context, true), options)
    },
    run: showCreated,
  },
  // Codes have at least six characters: no link's page can have this path.
  'GET /app/links/code': viewer(async (context) => htmlResponse(await pathStatus(context))),
  'GET /app/links/hits': viewer((context) => htmlResponse(hitsOfRows(context))),
})

/** The hits of the links that the list shows, for the script; the first one of all, a message. */
function hitsOfRows({ deps, user, query }: PageContext): Html {
  const codes = (query.codes ?? '').split(',').slice(0, PAGE_SIZE)
  const found = codes.flatMap((text) => {
    const code = toCode(text)
    return (code && deps.data.links.findByCode(code)) ?? []
  })
  const links = found.filter(({ accountId }) => accountId === user.account.id)
  const counts = deps.hits.of(links.map(({ id }) => id))
  const cells = links.map(
    ({ id, code }) => html`<data value="${code}">${parts.count(counts.get(id) ?? 0)}</data>`,
  )
  const [link, second] = links.filter(({ id }) => counts.get(id))
  const isAll = deps.data.accounts.findById(user.account.id)?.linkCount === links.length
  if (query.first !== '1' || !isAll || !link || second) return html`${cells}`
  const address = addressText(deps.addresses.display(link))
  const text = html`<span><strong>Your first hit.</strong> Somebody has followed
    <a href="${linkPath(link.code)}">${address}</a>.</span>`
  return html`${cells}<div id="toasts" hx-swap-oob="beforeend">${message(text)}</div>`
}

const wantsPart = ({ request }: PageContext, id: string): boolean =>
  request.headers.get('hx-target') === id && wantsFragment(request)

async function showCreated(context: PageContext): Promise<Response> {
  const created = await createLink(context)
  if (!wantsPart(context, 'create')) return linksPage(context, created)
  const table = await loadTable(context, currentTableQuery(context.request))
  // The parts of the page that htmx replaces: an empty form, the message and the list.
  return htmlResponse(html`
    ${createForm(context, true)}
    <div id="toasts" hx-swap-oob="innerHTML">${createdToast(context, created)}</div>
    ${await listSection(context, table, true)}`)
}

export async function linksPage(context: PageContext, created?: Created): Promise<Response> {
  const table = await loadTable(context, parseTableQuery(context.query))
  return page(context, {
    title: 'Links',
    // The navigation names the page; its links need the room.
    heading: html`<h1 class="visually-hidden">Links</h1>`,
    main: html`
      ${createForm(context, false)}
      <div id="toasts">${created ? createdToast(context, created) : doneToast(context)}</div>
      ${deadTile(context)}
      ${await listSection(context, table, false)}
      ${iconSymbols(['copy', 'external-link', 'qr-code'])}
      ${listDialogs(context.user)}`,
  })
}

/** The number of links whose destinations do not answer, if there are any. */
function deadTile({ deps, user }: PageContext): Html | false {
  const dead = deps.checks?.countDead(user.account.id) ?? 0
  if (dead === 0) return false
  const found = `${parts.plural(dead, 'destination')} ${dead === 1 ? 'does' : 'do'} not answer`
  return parts.notice('bad', html`<p><a href="/app/links?state=dead">${found}</a></p>`)
}

/** Messages over the list of links. */

/** The script removes the message when Undo no longer works. */
const message = (children: Value): Html => html`
  <section class="toast" data-brief role="status">
    <div class="row">${children}</div>
    ${closeButton()}
  </section>`

const DONE: Readonly<Record<string, string>> = {
  deleted: 'deleted',
  paused: 'paused',
  resumed: 'resumed',
  tagged: 'tagged',
  untagged: 'changed',
  restored: 'restored',
  moved: 'moved',
}

/**
 * The last action on the list: `done`, the number of links, and the codes that Undo restores,
 * separated by commas.
 */
function doneToast({ user, query }: PageContext): Html | false {
  const { done = '', n, undo = '' } = query
  const verb = Object.hasOwn(DONE, done) && DONE[done]
  if (!verb) return false
  const codes = undo
    .split(',')
    .filter((code) => /^[A-Z0-9]{6,20}$/i.test(code))
    .slice(0, PAGE_SIZE)
  const number = /^\d{1,5}$/.test(n ?? '') ? Number(n) : Math.max(codes.length, 1)
  const target = user.others.find(({ id }) => done === 'moved' && String(id) === query.to)
  const to = target && ` to ${target.name}`
  const text = html`<span>${parts.plural(number, 'link')} ${verb}${to}.</span>`
  if (target) {
    const open = parts.button('See these links', 'plain', { title: `Open ${target.name}` })
    const fields = [parts.hiddenFields({ account: target.id }), open]
    return message([text, parts.form(user, '/app/account/open', fields, { class: 'inline' })])
  }
  if (done !== 'deleted' || codes.length === 0) return message(text)
  const undoForm = parts.form(
    user,
    '/app/links/undo',
    [codes.map((code) => parts.hiddenFields({ code })), parts.button('Undo', 'plain')],
    { class: 'inline' },
  )
  return message([text, undoForm])
}

/**
 * Dialogs that the script opens over the list: a QR code, and the keyboard shortcuts. They are
 * text for the script, because text browsers show closed dialogs like all other elements.
 */

const NEW_LINK = 'n'

const SHORTCUTS = [
  ['/', 'Search'],
  ['Ctrl+K', 'Go to a link, a page or an action'],
  [NEW_LINK, 'New link'],
  ['j', 'Next link'],
  ['k', 'Previous link'],
  ['Enter', 'Open the page of the link'],
  ['← →', 'Select, copy, open, QR code'],
  ['c', 'Copy the short URL'],
  ['q', 'Show the QR code'],
  ['x', 'Select the link; Shift+click selects a range'],
  ['?', 'Show these shortcuts'],
] as const

const listDialogs = (user: CurrentUser): Html => html`<script type="text/html" id="dialogs">
  <dialog id="qr-dialog" class="dialog" aria-labelledby="qr-title">
    <h2 id="qr-title" class="code"></h2>
    <img class="qr" alt="" width="240" height="240">
    <p class="row">
      <a class="button plain" data-file="qr.png" download>Download PNG</a>
      <a class="button plain" data-file="qr.svg" download>Download SVG</a>
    </p>
    ${closeButton()}
  </dialog>
  <dialog id="shortcuts" class="dialog" aria-labelledby="shortcuts-title">
    <h2 id="shortcuts-title">Keyboard shortcuts</h2>
    ${parts.facts(
      SHORTCUTS.map(([key, action]) => {
        const isOffered = key !== NEW_LINK || user.may('POST', '/app/links')
        return isOffered && [html`<kbd>${key}</kbd>`, action]
      }),
    )}
    ${
      user.may('POST', '/app/links') &&
      html`<p class="hint after">Paste a URL anywhere on this page to shorten it.</p>`
    }
    ${closeButton()}
  </dialog></script>`
