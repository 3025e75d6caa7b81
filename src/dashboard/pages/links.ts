import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import { checkUrl, reserve, shorten } from '../../links/create.ts'
import { ReserveBody, ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { type CurrentUser, signedIn, spendWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { catchFormError, errorOptions, htmlResponse, isTemporary, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import {
  copyField,
  destination,
  linkPath,
  passcodeOnce,
  qrPicture,
  replacesMain,
} from '../ui/link-parts.ts'
import {
  type LinkTable,
  listFragment,
  listSection,
  loadTable,
  parseTableQuery,
} from '../ui/link-table.ts'

/** The account's links: the forms that create one, and the list. */
export const linksPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.links', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('', async ({ user, query, request }) => {
      const table = await loadTable(deps, user.account, parseTableQuery(query), request.signal)
      if (request.headers.get('hx-target') !== 'list' || !wantsFragment(request)) {
        return linksPage(user, { table, done: query.done })
      }
      const { markup, path } = listFragment(table)
      return htmlResponse(markup, { headers: { 'hx-replace-url': path } })
    })
    .post('', async ({ user, form }) => {
      const url = form.text('url')
      const shortened = await catchFormError(() => shortenFor(deps, user, url))
      const table = await newestLinks(deps, user)
      if ('done' in shortened) return linksPage(user, { table, created: shortened.done })
      return linksPage(user, { table, error: shortened.error, field: 'url', url })
    })
    // Codes have at least six characters: no link's page can have this path.
    .get('/claim', () => seeOther('/app/links'))
    .post('/claim', async ({ user, form }) => {
      const claim = { code: form.text('code'), url: form.text('destination') }
      const claimed = await claimFor(deps, user, claim)
      const table = await newestLinks(deps, user)
      return linksPage(user, { table, ...claimed, ...('error' in claimed && { claim }) })
    })

const newestLinks = (deps: DashboardDeps, { account }: CurrentUser): Promise<LinkTable> =>
  loadTable(deps, account, parseTableQuery({}))

/** A code that was just created, reserved or found. A reused link has no passcode to show. */
interface Created {
  kind: 'created' | 'reused' | 'reserved'
  code: string
  shortUrl: string
  url: string | null
  passcode: string | null
}

async function shortenFor(
  deps: DashboardDeps,
  { account }: CurrentUser,
  text: string,
): Promise<Created> {
  spendWrite(deps, account)
  const body = parseWith(ShortenBody, { url: text })
  const { code, short_url, url, passcode, reused } = await shorten(deps, account, body.url)
  return { kind: reused ? 'reused' : 'created', code, shortUrl: short_url, url, passcode }
}

interface Claim {
  code: string
  /** Empty: none yet. */
  url: string
}

type ClaimError = { error: AppError; field: 'code' | 'destination' }

/**
 * Checks the destination first, so that a refused one reserves nothing. Only storing it shows
 * whether the quota has room for it: if not, the code is released again.
 */
async function claimFor(
  deps: DashboardDeps,
  { account }: CurrentUser,
  { code, url }: Claim,
): Promise<{ created: Created } | ClaimError> {
  const checked = url === '' ? undefined : checkUrl(deps, url)
  const reserved = await catchFormError(async () => {
    spendWrite(deps, account)
    const body = parseWith(ReserveBody, { code })
    return checked instanceof AppError ? undefined : reserve(deps, account, body.code)
  })
  if ('error' in reserved) return { ...reserved, field: 'code' }
  if (checked instanceof AppError) return { error: checked, field: 'destination' }
  const view = reserved.done
  if (!view) throw new Error('a code with a valid destination is reserved')
  if (checked) {
    const set = await catchFormError(() =>
      updateOwnedLink(deps, account, { code: view.code, url: checked }),
    )
    if ('error' in set) {
      await deleteOwnedLink(deps, account, view.code)
      return { ...set, field: 'destination' }
    }
  }
  const { short_url: shortUrl, passcode } = view
  const destination = checked?.text ?? null
  return { created: { kind: 'reserved', code: view.code, shortUrl, passcode, url: destination } }
}

const DONE = { deleted: 'The code is deleted. It no longer works.' }

interface LinksPageProps {
  table: LinkTable
  done?: string | undefined
  created?: Created
  error?: AppError
  /** The field that the error belongs to. */
  field?: 'url' | 'code' | 'destination'
  /** What the refused form contained. */
  url?: string
  claim?: Claim
}

function linksPage(user: CurrentUser, props: LinksPageProps): Response {
  const { table, created, error, done } = props
  return page(user, {
    title: 'Links',
    current: 'links',
    ...(error && errorOptions(error)),
    main: html`
      ${parts.flash(DONE, done)}
      ${error && isTemporary(error) && parts.errorNotice(error.message)}
      ${created && createdCard(created)}
      <section class="card">
        ${shortenForm(user, props)}
        ${claimForm(user, props)}
      </section>
      ${listSection(table)}`,
  })
}

const TITLES = {
  created: 'Your short link is ready',
  reused: 'You already have a short link for this URL',
  reserved: 'The code is yours',
}

const createdCard = ({ kind, code, shortUrl, url, passcode }: Created): Html => html`
  <section class="card made" tabindex="-1" autofocus aria-labelledby="made-title">
    ${qrPicture(code, { size: 132 })}
    <div>
      <h2 id="made-title">${TITLES[kind]}</h2>
      ${copyField('Short URL', shortUrl, 'made-short')}
      <p>${
        url === null
          ? html`It has no destination yet: <a href="${linkPath(code)}">set one</a>.`
          : html`Destination: ${destination(url, linkPath(code))}`
      }</p>
      ${
        passcode === null
          ? html`<p class="hint">Its passcode was shown when the link was created, and cannot be
            shown again.</p>`
          : passcodeOnce(passcode)
      }
      <p class="last"><a href="${linkPath(code)}">Open its page: hits, destination, QR code</a></p>
    </div>
  </section>`

/** The error beside a field, which then gets the focus. */
function fieldError({ error, field }: LinksPageProps, name: LinksPageProps['field']) {
  const message = error && field === name && !isTemporary(error) ? error.message : undefined
  return { error: message, focus: message !== undefined && { autofocus: true } }
}

function shortenForm({ csrf }: CurrentUser, props: LinksPageProps): Html {
  const { error, focus } = fieldError(props, 'url')
  return parts.form({
    action: '/app/links',
    csrf,
    extra: replacesMain('/app/links'),
    children: html`
      <div class="one-line">
        ${parts.urlField({
          name: 'url',
          label: 'Shorten a URL',
          value: props.url,
          required: true,
          error,
          extra: { ...focus },
        })}
        ${parts.button('Shorten')}
      </div>
      <p class="hint"><a href="/app/links/bulk">Bulk create</a>: paste a list or upload a CSV.</p>`,
  })
}

function claimForm({ csrf }: CurrentUser, props: LinksPageProps): Html {
  const { claim } = props
  const code = fieldError(props, 'code')
  const url = fieldError(props, 'destination')
  const path = '/app/links/claim'
  const fields = parts.form({
    action: path,
    csrf,
    extra: replacesMain(path),
    children: [
      parts.field({
        name: 'code',
        label: 'Code',
        value: claim?.code,
        hint: '6 to 20 letters and digits. Upper and lower case are the same.',
        required: true,
        autocomplete: 'off',
        error: code.error,
        extra: { maxlength: 20, spellcheck: 'false', autocapitalize: 'characters', ...code.focus },
      }),
      parts.urlField({
        name: 'destination',
        label: 'Destination (optional)',
        value: claim?.url,
        hint: 'Without one, the short URL answers “not found” until you set it.',
        error: url.error,
        extra: { ...url.focus },
      }),
      parts.button('Reserve the code', 'plain'),
    ],
  })
  const open = claim === undefined ? html`<details>` : html`<details open>`
  return html`${open}
      <summary>Choose the code yourself</summary>
      ${fields}
    </details>`
}
