import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import { checkUrl, reserve, shorten } from '../../links/create.ts'
import { ReserveBody, ShortenBody } from '../../links/schema.ts'
import { deleteOwnedLink, updateOwnedLink } from '../../links/update.ts'
import { goTo } from '../answers.ts'
import { attempt, isForLater, refusedAs } from '../attempt.ts'
import { signedIn, spendWrite, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { fragment, page, wantsFragment } from '../ui/layout.ts'
import {
  copyField,
  destination,
  linkPath,
  passcodeOnce,
  qrPicture,
  swapsMain,
} from '../ui/link-parts.ts'
import {
  type LinkTable,
  listFragment,
  listSection,
  loadTable,
  readState,
} from '../ui/link-table.ts'

/** The account's links: making one, and the list of them all. */
export const linksPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.links', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('', async ({ visitor, query, request }) => {
      const table = await loadTable(deps, visitor.account, readState(query), request.signal)
      if (request.headers.get('hx-target') !== 'list' || !wantsFragment(request)) {
        return linksPage(visitor, { table, done: query.done })
      }
      const { markup, path } = listFragment(table)
      return fragment(markup, { headers: { 'hx-replace-url': path } })
    })
    .post('', async ({ visitor, form }) => {
      const url = form.text('url')
      const tried = await attempt(() => shortenFor(deps, visitor, url))
      return showMade(deps, visitor, 'done' in tried ? { made: tried.done } : { ...tried, url })
    })
    // A code has six letters or more: no code's page can have this address.
    .get('/claim', () => goTo('/app/links'))
    .post('/claim', async ({ visitor, form }) => {
      const claim = { code: form.text('code'), url: form.text('destination') }
      const tried = await claimFor(deps, visitor, claim)
      return showMade(deps, visitor, 'made' in tried ? tried : { ...tried, claim })
    })

/** A code that has just been made, reserved or found; a reused one has no passcode to show. */
interface Made {
  kind: 'created' | 'reused' | 'reserved'
  code: string
  shortUrl: string
  url: string | null
  passcode: string | null
}

async function shortenFor(deps: DashboardDeps, { account }: Visitor, text: string): Promise<Made> {
  spendWrite(deps, account)
  const { url } = parseWith(ShortenBody, { url: text })
  const view = await shorten(deps, account, url)
  const { code, short_url, passcode, reused } = view
  return {
    ...{ kind: reused ? 'reused' : 'created', code, shortUrl: short_url, url: view.url, passcode },
  }
}

interface Claim {
  code: string
  /** Empty: none yet. */
  url: string
}

type ClaimRefused = { refused: AppError; field: 'code' | 'destination' }

/**
 * A destination is checked first, so that nothing is reserved for one that is refused. One that the
 * quota has no room for is known only later: the code is free again then.
 */
async function claimFor(
  deps: DashboardDeps,
  { account }: Visitor,
  { code, url }: Claim,
): Promise<{ made: Made } | ClaimRefused> {
  const checked = url === '' ? undefined : checkUrl(deps, url)
  const reserved = await attempt(async () => {
    spendWrite(deps, account)
    const body = parseWith(ReserveBody, { code })
    return checked instanceof AppError ? undefined : reserve(deps, account, body.code)
  })
  if ('refused' in reserved) return { ...reserved, field: 'code' }
  if (checked instanceof AppError) return { refused: checked, field: 'destination' }
  const view = reserved.done
  if (!view) throw new Error('a code with a good destination is reserved')
  if (checked) {
    const change = { code: view.code, url: checked }
    const set = await attempt(() => updateOwnedLink(deps, account, change))
    if ('refused' in set) {
      await deleteOwnedLink(deps, account, view.code)
      return { ...set, field: 'destination' }
    }
  }
  const { short_url: shortUrl, passcode } = view
  const made = { kind: 'reserved', code: view.code, shortUrl, passcode } as const
  return { made: { ...made, url: checked?.text ?? null } }
}

interface Shown {
  table: LinkTable
  done?: string | undefined
  made?: Made | undefined
  refused?: AppError | undefined
  /** What the refused form held. */
  url?: string | undefined
  claim?: Claim | undefined
  field?: 'code' | 'destination' | undefined
}

/** The page behind a form, with the newest links. */
async function showMade(
  deps: DashboardDeps,
  visitor: Visitor,
  shown: Omit<Shown, 'table'>,
): Promise<Response> {
  return linksPage(visitor, {
    ...{ ...shown, table: await loadTable(deps, visitor.account, readState({})) },
  })
}

const DONE: Readonly<Record<string, string>> = {
  deleted: 'The code is deleted. It stopped working at once.',
}

function linksPage(visitor: Visitor, shown: Shown): Response {
  const { table, made, refused, done = '' } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  return page(visitor, {
    ...{ title: 'Links', current: 'links' },
    ...(refused && refusedAs(refused)),
    main: html`
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      ${refused && isForLater(refused) && parts.notice('bad', html`<p>${refused.message}</p>`)}
      ${made && madeCard(made)}
      <section class="card">
        ${shortenForm(visitor, shown)}
        ${claimForm(visitor, shown)}
      </section>
      ${listSection(table)}`,
  })
}

const TITLES = {
  created: 'Your short link is ready',
  reused: 'You already have a short link for this URL',
  reserved: 'The code is yours',
}

function madeCard({ kind, code, shortUrl, url, passcode }: Made): Html {
  const leads =
    url === null
      ? html`It leads nowhere yet: <a href="${linkPath(code)}">set its
    destination</a>.`
      : html`It leads to ${destination(url, linkPath(code))}`
  return html`
    <section class="card made" tabindex="-1" autofocus aria-labelledby="made-title">
      ${qrPicture(code, { size: 132 })}
      <div>
        <h2 id="made-title">${TITLES[kind]}</h2>
        ${copyField('Short URL', shortUrl, 'made-short')}
        <p>${leads}</p>
        ${
          passcode === null
            ? html`<p class="hint">Nothing new was made. Its passcode was shown when the link was
              created, and cannot be shown again.</p>`
            : passcodeOnce(passcode)
        }
        <p class="last"><a href="${linkPath(code)}">Open its page: hits, destination, QR</a></p>
      </div>
    </section>`
}

const besideField = (refused: AppError | undefined, isHere: boolean) =>
  refused && isHere && !isForLater(refused) ? refused.message : undefined

function shortenForm({ csrf }: Visitor, { url, refused }: Shown): Html {
  const error = besideField(refused, url !== undefined)
  return parts.form({
    ...{ action: '/app/links', csrf, extra: swapsMain('/app/links') },
    children: html`
      <div class="one-line">
        ${parts.field({
          ...{ name: 'url', label: 'Shorten a URL', value: url, error, required: true },
          ...{ autocomplete: 'off' },
          extra: {
            ...{ placeholder: 'https://', inputmode: 'url', spellcheck: 'false' },
            ...(error && { autofocus: true }),
          },
        })}
        ${parts.button('Shorten')}
      </div>
      <p class="hint">
        Many at once? <a href="/app/links/bulk">Paste a list or upload a CSV</a>.</p>`,
  })
}

function claimForm({ csrf }: Visitor, { claim, refused, field }: Shown): Html {
  const errorOf = (name: typeof field) =>
    besideField(refused, claim !== undefined && field === name)
  const children = [
    parts.field({
      ...{ name: 'code', label: 'Code', value: claim?.code, error: errorOf('code') },
      ...{ hint: '6 to 20 letters and digits. Capitals and small letters are the same.' },
      ...{ required: true, autocomplete: 'off' },
      extra: {
        ...{ maxlength: 20, spellcheck: 'false', autocapitalize: 'characters' },
        ...(errorOf('code') && { autofocus: true }),
      },
    }),
    parts.field({
      ...{ name: 'destination', label: 'Destination (may follow later)', value: claim?.url },
      ...{ hint: 'Until it has one, the short URL answers “not found”.', autocomplete: 'off' },
      ...{ error: errorOf('destination') },
      extra: {
        ...{ placeholder: 'https://', inputmode: 'url', spellcheck: 'false' },
        ...(errorOf('destination') && { autofocus: true }),
      },
    }),
    parts.button('Reserve the code', 'plain'),
  ]
  const path = '/app/links/claim'
  const open = claim === undefined ? html`<details>` : html`<details open>`
  return html`${open}
      <summary>Choose the code yourself</summary>
      ${parts.form({ action: path, csrf, extra: swapsMain(path), children })}
    </details>`
}
