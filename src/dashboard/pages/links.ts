import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { rateLimited } from '../../http/guard.ts'
import { type Code, toCode } from '../../lib/code.ts'
import { html } from '../../lib/html.ts'
import { checkUrl, reserve, shorten } from '../../links/create.ts'
import { ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { type CurrentUser, type Query, signedIn, tryWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { catchFormError, errorOptions, htmlResponse, isTemporary } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type Created, type CreateFormProps, createdToast, createForm } from '../ui/create-link.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import {
  currentTableQuery,
  type LinkTable,
  listFragment,
  listSection,
  loadTable,
  offeredTags,
  parseTableQuery,
} from '../ui/link-table.ts'
import { listDialogs } from '../ui/list-dialogs.ts'
import { type DoneQuery, doneToast } from '../ui/toasts.ts'

/** The account's links: the form that creates one, and the list. */
export const linksPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.links', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('', async ({ user, query, request }) => {
      const table = await loadTable(deps, user.account, parseTableQuery(query), request.signal)
      if (request.headers.get('hx-target') !== 'list' || !wantsFragment(request)) {
        return linksPage(deps, user, { table, done: query, form: { url: sharedUrl(query) } })
      }
      const { markup, path } = listFragment(table)
      return htmlResponse(markup, { headers: { 'hx-replace-url': path } })
    })
    .post('', async ({ user, form, request }) => {
      const typed = { url: form.text('url'), code: form.text('code') }
      const create = typed.code === '' ? shortenFor : claimFor
      const result = await create(deps, user, typed)
      const isFragment = request.headers.get('hx-target') === 'create' && wantsFragment(request)
      if ('created' in result) {
        const query = isFragment ? currentTableQuery(request) : parseTableQuery({})
        const table = await loadTable(deps, user.account, query, request.signal)
        const { created } = result
        return isFragment
          ? createdFragment(deps, user, { table, created })
          : linksPage(deps, user, { table, created, form: {} })
      }
      const refused = { ...typed, ...result }
      if (isFragment) return htmlResponse(createForm(user, refused), errorOptions(result.error))
      const table = await loadTable(deps, user.account, parseTableQuery({}), request.signal)
      return linksPage(deps, user, { table, form: refused })
    })
    // Codes have at least six characters: no link's page can have this path.
    .get('/code', async ({ user, query }) =>
      htmlResponse(await codeStatus(deps, user, query.code ?? '')),
    )

/** The URL from a bookmarklet or another app; some apps send it within a text. */
const sharedUrl = ({ url, text = '' }: Query): string | undefined =>
  url ?? /https?:\/\/\S+/i.exec(text)?.[0]

interface Typed {
  /** Empty: reserve the code without a destination. */
  url: string
  /** Empty: a random one. */
  code: string
}

type Refused = { error: AppError; field: 'url' | 'code' }

async function shortenFor(
  deps: DashboardDeps,
  user: CurrentUser,
  typed: Typed,
): Promise<{ created: Created } | Refused> {
  const shortened = await tryWrite(deps, user, () => {
    if (typed.url === '') {
      throw new AppError('invalid_value', 'Paste a URL, or choose a code to reserve.')
    }
    const body = parseWith(ShortenBody, { url: withScheme(typed.url) })
    return shorten(deps, user.account, body.url)
  })
  if ('error' in shortened) return { ...shortened, field: 'url' }
  const { code, short_url: shortUrl, url, passcode, reused } = shortened.done
  return { created: { kind: reused ? 'reused' : 'created', code, shortUrl, url, passcode } }
}

const CODE_RULE = '6 to 20 letters and digits'

/**
 * Checks the destination first, so that a refused one reserves nothing. Only storing it shows
 * whether the quota has room for it: if not, the code is released again.
 */
async function claimFor(
  deps: DashboardDeps,
  user: CurrentUser,
  typed: Typed,
): Promise<{ created: Created } | Refused> {
  const { account } = user
  const parsed = await tryWrite(deps, user, async () => requireCode(typed.code))
  if ('error' in parsed) return { ...parsed, field: 'code' }
  const checked = typed.url === '' ? undefined : checkUrl(deps, withScheme(typed.url))
  if (checked instanceof AppError) return { error: checked, field: 'url' }
  const reserved = await catchFormError(() => reserve(deps, account, parsed.done))
  if ('error' in reserved) return { ...reserved, field: 'code' }
  const { code, short_url: shortUrl, passcode } = reserved.done
  if (checked) {
    const set = await catchFormError(() => updateOwnedLink(deps, account, { code, url: checked }))
    if ('error' in set) {
      await deleteOwnedLink(deps, account, code)
      return { ...set, field: 'url' }
    }
  }
  const url = checked?.text ?? null
  return { created: { kind: 'reserved', code, shortUrl, passcode, url } }
}

function requireCode(text: string): Code {
  const code = toCode(text)
  if (!code) throw new AppError('invalid_value', `Use ${CODE_RULE}.`)
  return code
}

/** Charged like `/api/lookup`, so that it reveals no more codes per minute. */
async function codeStatus(deps: DashboardDeps, { account }: CurrentUser, text: string) {
  const typed = text.trim()
  if (typed === '') return html``
  const code = toCode(typed)
  if (!code) return html`${CODE_RULE}`
  const budget = deps.limiter.takeOf(account, 'read')
  if (!budget.allowed) throw rateLimited(budget)
  // Also finds codes without a link that the operator has disabled.
  const isTaken = deps.destinations.find(code) !== undefined
  return isTaken
    ? html`<span class="badge bad">Taken</span>`
    : html`<span class="badge good">Free</span>`
}

/** The parts of the page that htmx replaces: an empty form, the message and the list. */
async function createdFragment(
  deps: DashboardDeps,
  user: CurrentUser,
  { table, created }: { table: LinkTable; created: Created },
): Promise<Response> {
  const tags = await offeredTags(deps, user.account)
  return htmlResponse(html`
    ${createForm(user, { isFragment: true })}
    <div id="toasts" hx-swap-oob="innerHTML">${createdToast(user, created)}</div>
    ${listSection(user, table, { tags, isOutOfBand: true })}`)
}

interface LinksPageProps {
  table: LinkTable
  done?: DoneQuery
  created?: Created
  /** The values and errors of the create form. */
  form: CreateFormProps
  /** The error of another form of the list. */
  error?: AppError
}

export async function linksPage(
  deps: DashboardDeps,
  user: CurrentUser,
  { table, done = {}, created, form, error }: LinksPageProps,
): Promise<Response> {
  const tags = await offeredTags(deps, user.account)
  const shown = error ?? (form.error && isTemporary(form.error) ? form.error : undefined)
  const refusal = error ?? form.error
  return page(user, {
    title: 'Links',
    current: 'links',
    // The navigation names the page; its links need the room.
    heading: html`<h1 class="visually-hidden">Links</h1>`,
    ...(refusal && errorOptions(refusal)),
    main: html`
      ${shown && parts.errorNotice(shown.message)}
      ${createForm(user, form)}
      <div id="toasts">${created ? createdToast(user, created) : doneToast(user, done)}</div>
      ${listSection(user, table, { tags })}
      ${listDialogs()}`,
  })
}
