import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { SMALL_BODY_MAX } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import { bulk, checkUrl } from '../../links/create.ts'
import { fileAnswer } from '../answers.ts'
import { attempt, isForLater, refusedAs } from '../attempt.ts'
import { signedIn, spendWrite, type Visitor } from '../auth/guard.ts'
import { CSV_TYPE, linesOf, parseUrlFile, type UrlLine } from '../csv.ts'
import type { DashboardDeps } from '../deps.ts'
import { type BulkItem, bulkCsv, isForPage, resultCards, rowsOf } from '../ui/bulk-result.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { count } from '../ui/link-parts.ts'

/** Pasted text up to this length is shown again after any refusal, of whatever it consists. */
const KEPT_LENGTH_MAX = SMALL_BODY_MAX

/** Many URLs at once: pasted, or from a CSV file. */
export const bulkPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.bulk', prefix: '/app/links/bulk' })
    .use(signedIn(deps, { bulk: true }))
    .get('', ({ visitor }) => bulkPage(deps, visitor, {}))
    .post('', async ({ visitor, form, isCharged }) => {
      const sent = { pasted: keptText(form, deps.plans[visitor.account.plan].bulkMax) }
      const tried = await attempt(async () => {
        // First, because reading a file is the most expensive part.
        if (!isCharged) spendWrite(deps, visitor.account)
        return shortenAll(deps, visitor, form)
      })
      if ('refused' in tried) return bulkPage(deps, visitor, { ...sent, refused: tried.refused })
      if ('problem' in tried.done) return bulkPage(deps, visitor, { ...sent, ...tried.done })
      return resultAnswer(deps, visitor, tried.done.items, form.text('as') === 'csv')
    })

/**
 * A page where it has room for every result, else the file: it may have any size, and no passcode
 * is lost. A page where all failed shows the first ones.
 */
async function resultAnswer(
  deps: DashboardDeps,
  visitor: Visitor,
  items: BulkItem[],
  isFileAsked: boolean,
): Promise<Response> {
  const failed = items.filter(({ view }) => !view.ok)
  const pasted = failed.map(({ text }) => text).join('\n')
  const isAllBad = failed.length === items.length
  const isPage = isAllBad || (!isFileAsked && isForPage(items))
  if (isPage) {
    const cards = await resultCards(rowsOf(items))
    const hasRoom = bytesOf(cards) + bytesOf(html`${pasted}`) <= CONTENT_BYTES_MAX
    if (isAllBad || hasRoom) return bulkPage(deps, visitor, { items, cards, pasted })
  }
  return fileAnswer(bulkCsv(items), { name: 'hopcode-new-links.csv', type: CSV_TYPE })
}

/** Of the results and of the text field, so that the whole page stays below 200 kB. */
const CONTENT_BYTES_MAX = 185_000
const bytesOf = (markup: Html): number => Buffer.byteLength(markup.toString())

/** Characters of a file's name that stand beside each of its lines. */
const FILE_NAME_MAX = 60

type Outcome = { items: BulkItem[] } | { problem: string; field: 'urls' | 'file' }

/** What was pasted, or of very much text one batch. */
function keptText(form: Form, bulkMax: number): string {
  const pasted = form.raw('urls')
  if (pasted.length <= KEPT_LENGTH_MAX) return pasted
  return linesOf(pasted, bulkMax)
    .map(({ text }) => text)
    .join('\n')
}

async function shortenAll(deps: DashboardDeps, visitor: Visitor, form: Form): Promise<Outcome> {
  const { bulkMax } = deps.plans[visitor.account.plan]
  const file = form.file('file')
  const fromFile = file ? await parseUrlFile(file, bulkMax + 1) : []
  if ('problem' in fromFile) return { problem: fromFile.problem, field: 'file' }
  const fileName = file?.name.slice(0, FILE_NAME_MAX)
  const lines = [
    ...linesOf(form.raw('urls'), bulkMax + 1).map((line) => ({
      ...line,
      place: `Line ${line.line}`,
    })),
    ...fromFile.map((line) => ({ ...line, place: `${fileName}, line ${line.line}` })),
  ]
  if (lines.length === 0) {
    return { problem: 'Paste at least one URL, or choose a file.', field: 'urls' }
  }
  if (lines.length > bulkMax) {
    const most = count(bulkMax)
    return {
      problem: `These are more than ${most} URLs: your plan accepts ${most} at once.`,
      field: fromFile.length > bulkMax ? 'file' : 'urls',
    }
  }
  return { items: await shortenLines(deps, visitor, lines) }
}

async function shortenLines(
  deps: DashboardDeps,
  { account }: Visitor,
  lines: readonly (UrlLine & { place: string })[],
): Promise<BulkItem[]> {
  const clear = lines.filter(({ problem }) => problem === undefined)
  const urls = clear.map(({ text }) => text)
  // Where all are bad, the operation gives one reason for all of them.
  const isHopeless = urls.every((url) => checkUrl(deps, url) instanceof AppError)
  const views = isHopeless ? undefined : (await bulk(deps, account, urls)).results
  let next = 0
  return lines.map(({ place, text, problem }) => {
    if (problem !== undefined) {
      return { place, text, view: { ok: false, url: text, error: problem } }
    }
    const view = views?.[next++]
    if (view) return { place, text, view }
    const checked = checkUrl(deps, text)
    const error = checked instanceof AppError ? checked.message : ''
    return { place, text, view: { ok: false, url: text, error } }
  })
}

interface Shown {
  items?: BulkItem[]
  cards?: Html
  refused?: AppError
  problem?: string
  field?: 'urls' | 'file'
  /** What the text field holds: all of a form that was refused, or the lines that failed. */
  pasted?: string
}

function bulkPage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Response {
  const { items = [], cards, refused, problem, pasted = '' } = shown
  const isFailed = problem !== undefined || (items.length > 0 && !items.some(({ view }) => view.ok))
  const room = CONTENT_BYTES_MAX - (cards ? bytesOf(cards) : 0)
  const hasRoom = pasted.length <= room && bytesOf(html`${pasted}`) <= room
  return page(visitor, {
    ...{ title: 'Many links at once', current: 'links', status: isFailed ? 422 : 200 },
    ...(refused && refusedAs(refused)),
    main: html`
      <p><a href="/app/links">All links</a></p>
      ${refused && parts.notice('bad', html`<p>${refused.message}</p>`)}
      ${cards}
      <section class="card">
        ${items.length > 0 && html`<h2>${isAllGood(items) ? 'More' : 'Correct and try again'}</h2>`}
        ${hasRoom || parts.notice('note', html`<p>${TOO_LONG}</p>`)}
        ${bulkForm(deps, visitor, { ...shown, pasted: hasRoom ? pasted : '' })}
      </section>`,
  })
}

const TOO_LONG =
  'What you sent is too long to be shown here again. Correct it where you have it, and send it ' +
  'once more: as a file, or in smaller parts.'

const isAllGood = (items: readonly BulkItem[]) => items.every(({ view }) => view.ok)

function bulkForm(deps: DashboardDeps, visitor: Visitor, shown: Shown) {
  const { pasted = '', problem, field, refused } = shown
  const errorOf = (name: string) => (field === name ? problem : undefined)
  const { bulkMax } = deps.plans[visitor.account.plan]
  const lost = refused && isForLater(refused) ? ' Choose it again after a refusal.' : ''
  return parts.form({
    ...{ action: '/app/links/bulk', csrf: visitor.csrf },
    extra: { enctype: 'multipart/form-data', 'data-may-download': true },
    children: [
      parts.field({
        ...{ name: 'urls', label: 'URLs, one a line', type: 'textarea', value: pasted },
        ...{ hint: `Up to ${count(bulkMax)} at once on your plan.`, error: errorOf('urls') },
        ...{ autocomplete: 'off', extra: { spellcheck: 'false', rows: 8, class: 'code' } },
      }),
      parts.field({
        ...{ name: 'file', label: 'Or a CSV file', type: 'file', error: errorOf('file') },
        hint: `Its column named url, long_url or destination counts, else the first one.${lost}`,
        extra: { accept: '.csv,.tsv,.txt,text/csv,text/plain' },
      }),
      html`<div class="row">
        ${parts.button('Shorten all')}
        ${parts.button('Shorten and download CSV', 'plain', {
          ...{ name: 'as', value: 'csv', 'data-downloads': true },
        })}
      </div>
      <p class="hint after">Each new link has a passcode that is shown once: on the page that
      follows, or in the file that you download in its place. More results than a page has room for,
      about a hundred, always come as the file.</p>`,
    ],
  })
}
