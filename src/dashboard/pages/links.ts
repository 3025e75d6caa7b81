import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { rateLimited } from '../../http/guard.ts'
import { toCode } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import { checkUrl, reserve, shorten } from '../../links/create.ts'
import { ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type PageContext, spendWrite } from '../auth/guard.ts'
import { formAction, signedInPages } from '../page-routes.ts'
import { atField, errorOptions, htmlResponse, isFormError, refuse, refuseAt } from '../responses.ts'
import { type Created, createdToast, createForm } from '../ui/create-link.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import {
  currentTableQuery,
  listFragment,
  listSection,
  loadTable,
  parseTableQuery,
} from '../ui/link-table.ts'
import { listDialogs } from '../ui/list-dialogs.ts'
import { doneToast } from '../ui/toasts.ts'

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
  const { code, short_url: shortUrl, url, passcode, reused } = shortened
  return { kind: reused ? 'reused' : 'created', code, shortUrl, url, passcode }
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
  if (checked instanceof AppError) throw refuseAt('url', checked.message)
  const reserved = await atField('code', () => reserve(deps, account, parsed))
  const { code, short_url: shortUrl, passcode } = reserved
  try {
    if (checked) {
      await atField('url', () => updateOwnedLink(deps, account, { code, url: checked }))
    }
  } catch (error) {
    if (isFormError(error)) await deleteOwnedLink(deps, account, code)
    throw error
  }
  return { kind: 'reserved', code, shortUrl, passcode, url: checked?.text ?? null }
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
      ${listDialogs()}`,
  })
}
