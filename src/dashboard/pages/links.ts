import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { rateLimited } from '../../http/guard.ts'
import { toCode } from '../../lib/code.ts'
import { type Html, html, type Value } from '../../lib/html.ts'
import { checkUrl, reserve, shorten } from '../../links/create.ts'
import { findUrl, withoutInvisible } from '../../links/pasted.ts'
import { ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import { formAction, signedInPages } from '../page-routes.ts'
import {
  atField,
  errorOptions,
  htmlResponse,
  isFormError,
  refuse,
  refuseAt,
  wordingOf,
} from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { icon, iconSymbols } from '../ui/icons.ts'
import { PAGE_SIZE, page, wantsFragment } from '../ui/layout.ts'
import { bare, linkPath, passcodeOnce, qrPicture } from '../ui/link-parts.ts'
import {
  currentTableQuery,
  listFragment,
  listSection,
  loadTable,
  parseTableQuery,
} from '../ui/link-table.ts'

/** The account's links: the form that creates one, and the list. */
export const linksPages = signedInPages({
  'GET /app/links': async (context) => {
    if (!wantsPart(context, 'list')) return linksPage(context)
    const { markup, path } = listFragment(await loadTable(context, parseTableQuery(context.query)))
    return htmlResponse(markup, { headers: { 'hx-replace-url': path } })
  },
  'POST /app/links': formAction((context) => {
    const { refusal } = context
    if (!refusal || !wantsPart(context, 'create')) return linksPage(context)
    return htmlResponse(createForm(context, true), errorOptions(refusal))
  }, createLink),
  // Codes have at least six characters: no link's page can have this path.
  'GET /app/links/code': async (context) => htmlResponse(await codeStatus(context)),
})

const wantsPart = ({ request }: PageContext, id: string): boolean =>
  request.headers.get('hx-target') === id && wantsFragment(request)

async function createLink(context: PageContext): Promise<Response> {
  const { user, form, request } = context
  spendWrite(context)
  const create = form.text('code') === '' ? shortenFor : claimFor
  const created = await create(context)
  if (!wantsPart(context, 'create')) return linksPage(context, created)
  const table = await loadTable(context, currentTableQuery(request))
  // The parts of the page that htmx replaces: an empty form, the message and the list.
  return htmlResponse(html`
    ${createForm(context, true)}
    <div id="toasts" hx-swap-oob="innerHTML">${createdToast(user, created)}</div>
    ${await listSection(context, table, true)}`)
}

async function shortenFor({ deps, user, form }: PageContext): Promise<Created> {
  const shortened = await atField('url', () => {
    const typed = form.text('url')
    if (typed === '') throw refuse('Paste a URL, or choose a code to reserve.')
    const body = parseWith(ShortenBody, { url: withScheme(typed) })
    return shorten(deps, user.account, body.url)
  })
  return { ...shortened, kind: shortened.reused ? 'reused' : 'created' }
}

const CODE_RULE = '6 to 20 letters and digits'

/**
 * Checks the destination first, so that a refused one reserves nothing. Only storing it shows
 * whether the quota has room for it: if not, the code is released again.
 */
async function claimFor({ deps, user: { account }, form }: PageContext): Promise<Created> {
  const parsed = toCode(form.text('code'))
  if (!parsed) throw refuseAt('code', `Use ${CODE_RULE}.`)
  const typed = form.text('url')
  const checked = typed === '' ? undefined : checkUrl(deps, withScheme(typed))
  if (checked instanceof AppError) throw refuseAt('url', wordingOf(checked))
  const reserved = await atField('code', () => reserve(deps, account, parsed))
  const { code } = reserved
  try {
    if (checked) {
      await atField('url', () => updateOwnedLink(deps, account, { code, url: checked }))
    }
  } catch (error) {
    if (isFormError(error)) await deleteOwnedLink(deps, account, code)
    throw error
  }
  return { ...reserved, kind: 'reserved', url: checked?.text ?? null }
}

/** Charged like `/api/lookup`, so that it reveals no more codes per minute. */
async function codeStatus({ deps, user, query }: PageContext): Promise<Html> {
  const typed = (query.code ?? '').trim()
  if (typed === '') return html``
  const code = toCode(typed)
  if (!code) return html`${CODE_RULE}`
  const budget = deps.limiter.takeOf(user.account, 'read')
  if (!budget.allowed) throw rateLimited(budget)
  // Also finds codes without a link that the operator has disabled.
  const isTaken = deps.destinations.find(code) !== undefined
  return isTaken
    ? html`<span class="badge bad">Taken</span>`
    : html`<span class="badge good">Free</span>`
}

export async function linksPage(context: PageContext, created?: Created): Promise<Response> {
  const table = await loadTable(context, parseTableQuery(context.query))
  return page(context, {
    title: 'Links',
    // The navigation names the page; its links need the room.
    heading: html`<h1 class="visually-hidden">Links</h1>`,
    main: html`
      ${createForm(context, false)}
      <div id="toasts">${created ? createdToast(context.user, created) : doneToast(context)}</div>
      ${await listSection(context, table, false)}
      ${iconSymbols(['copy', 'external-link', 'qr-code'])}
      ${listDialogs()}`,
  })
}

/** The form that creates a link, and the message with the result. */

/** A code that was just created, reserved or found. A reused link has no passcode to show. */
interface Created {
  kind: 'created' | 'reused' | 'reserved'
  code: string
  short_url: string
  url: string | null
  passcode: string | null
}

/**
 * The URL from a bookmarklet or another app. Some apps send it within a text, or within `url`; a
 * bookmarklet's has no spaces and stays as it is.
 */
function sharedUrl({ url = '', text = '' }: Query): string | undefined {
  const given = withoutInvisible(url)
  if (/^https?:\/\/\S+$/i.test(given)) return given
  return findUrl(given) ?? findUrl(text) ?? (given || undefined)
}

/** `isFragment`: it replaces the form on the page. */
function createForm(context: PageContext, isFragment: boolean): Html {
  const url = typed(context, 'url', sharedUrl(context.query))
  const code = typed(context, 'code')
  const startsAtUrl = url.error !== undefined || (isFragment && code.error === undefined)
  return parts.form(
    context.user,
    '/app/links',
    [
      parts.urlField({
        ...url,
        label: 'Shorten a URL',
        extra: { placeholder: 'Paste a URL to shorten', autofocus: startsAtUrl },
      }),
      parts.field({
        ...code,
        label: 'Custom code (optional)',
        autocomplete: 'off',
        extra: {
          placeholder: 'Custom code',
          maxlength: 20,
          spellcheck: 'false',
          autocapitalize: 'characters',
          'hx-get': '/app/links/code',
          'hx-trigger': 'input changed delay:250ms',
          'hx-target': '#code-status',
          'hx-swap': 'innerHTML',
          'hx-sync': 'this:replace',
          autofocus: code.error !== undefined,
        },
      }),
      parts.button('Shorten'),
      html`<p id="code-status" role="status"></p>`,
    ],
    {
      id: 'create',
      class: 'create',
      'hx-post': '/app/links',
      'hx-target': 'this',
      'hx-swap': 'outerHTML',
      // A second Enter must not replace the response with the passcode.
      'hx-sync': 'this:drop',
    },
  )
}

const TITLES = {
  created: 'Your short link is ready',
  reused: 'You already have a short link for this URL',
  reserved: 'The code is yours',
}

/** The result, shown over the list. The script copies the short URL. */
function createdToast(user: CurrentUser, created: Created): Html {
  const { kind, code, short_url: shortUrl, url, passcode } = created
  const id = `new-${code}`
  const short = html`<data id="${id}" value="${shortUrl}">${bare(shortUrl)}</data>`
  return html`
    <section class="toast" aria-labelledby="toast-title" data-copy-now="${id}">
      ${qrPicture(code, { size: 96 })}
      <div>
        <h2 id="toast-title">${TITLES[kind]}</h2>
        <p><a class="code" href="${linkPath(code)}">${short}</a></p>
        ${url === null && html`<p>It has no destination yet: set one on its page.</p>`}
        <div class="row">
          ${parts.copyButton(id, 'short URL')}
          ${
            kind !== 'reused' &&
            parts.buttonForm(user, `${linkPath(code)}/delete`, 'Undo', {
              title: `Undo: delete ${code}`,
            })
          }
        </div>
        ${
          passcode !== null &&
          html`<details><summary>For the API: passcode, shown once</summary>
            ${passcodeOnce(passcode)}</details>`
        }
      </div>
      ${closeButton()}
    </section>`
}

/** Messages over the list of links. */

/** Hidden without scripts. */
const closeButton = (): Html => html`
  <button type="button" class="act close" hidden data-needs-script data-close
    aria-label="Close">${icon('x')}</button>`

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
  const number = /^\d{1,2}$/.test(n ?? '') ? Number(n) : Math.max(codes.length, 1)
  const text = html`<span>${parts.plural(number, 'link')} ${verb}.</span>`
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

const SHORTCUTS = [
  ['/', 'Search; also Ctrl+K'],
  ['n', 'New link'],
  ['j', 'Next link'],
  ['k', 'Previous link'],
  ['Enter', 'Open the page of the link'],
  ['← →', 'Select, copy, open, QR code'],
  ['c', 'Copy the short URL'],
  ['q', 'Show the QR code'],
  ['x', 'Select the link'],
  ['?', 'Show these shortcuts'],
] as const

const listDialogs = (): Html => html`<script type="text/html" id="dialogs">
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
    ${parts.facts(SHORTCUTS.map(([key, action]) => [html`<kbd>${key}</kbd>`, action]))}
    <p class="hint after">Paste a URL anywhere on this page to shorten it.</p>
    ${closeButton()}
  </dialog></script>`
