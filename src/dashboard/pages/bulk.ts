import { AppError } from '../../errors.ts'
import { linesOf, readUrls, type UrlLine } from '../../import/read-urls.ts'
import { SourceError } from '../../import/source.ts'
import { BYTE_ORDER_MARK, CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import { checkUrl } from '../../links/check.ts'
import { bulk } from '../../links/create.ts'
import { changeProperties } from '../../links/properties.ts'
import { BAD_TAGS, type BulkItemView, PropertiesBody } from '../../links/schema.ts'
import { withScheme } from '../../links/url.ts'
import { type PageContext, spendWrite } from '../auth/guard.ts'
import { campaignFields, campaignWriter } from '../cards/campaign.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse, isFormError, isTemporary, refuseAt, wordingOf } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, typed } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { destination, linkPath, shortUrl } from '../ui/link-parts.ts'

/** Bulk create: many URLs at once, pasted or from a CSV file. */
export const bulkPages = signedInPages({
  'GET /app/links/bulk': {
    role: 'editor',
    offers: [{ label: 'Create many links', words: 'bulk' }],
    run: (context) => bulkPage(context, { pasted: '' }),
  },
  'POST /app/links/bulk': {
    role: 'editor',
    bulk: true,
    page: (context) => bulkPage(context, { pasted: context.form.raw('urls') }),
    run: async (context) => {
      // First, because reading a file is the most expensive part.
      spendWrite(context)
      const tags = readTags(context)
      const items = await shortenAll(context)
      const problem = await addTags(context, items, tags)
      return resultResponse(context, items, problem)
    },
  },
})

/** A page, or a file if the URLs are so long that a page with all passcodes would be too large. */
async function resultResponse(
  context: PageContext,
  items: BulkItem[],
  problem: string | undefined,
): Promise<Response> {
  const isFileWanted = context.form.text('as') === 'csv'
  const failed = items.filter(({ view }) => !view.ok)
  if (failed.length === items.length || (!isFileWanted && fitsPage(items))) {
    const pasted = failed.map(({ text }) => text).join('\n')
    const created = items.filter(isOk).filter(({ view }) => !view.reused)
    const lines = await pageSlices.map(created, LINES_AT_ONCE, (item) => html`${okLine(item)}`)
    return bulkPage(context, { items, lines, pasted, problem })
  }
  return fileResponse(bulkCsv(items), { name: 'hopcode-new-links.csv', type: CSV_TYPE })
}

/** Lines of the file that are escaped in one time slice. */
const LINES_AT_ONCE = 100

function readTags({ form }: PageContext): readonly string[] {
  const sent = form
    .text('tags')
    .split(',')
    .filter((tag) => tag.trim() !== '')
  const { data, error } = PropertiesBody.safeParse({ tags: sent })
  if (!data?.tags) throw refuseAt('tags', error?.issues[0]?.message ?? BAD_TAGS)
  return data.tags
}

/** Links changed in one transaction. */
const TAGGED_AT_ONCE = 100

/**
 * New links only: a link that the account had stays as it is. Returns why some have no tags: their
 * passcodes are shown all the same.
 */
async function addTags(
  { deps, user }: PageContext,
  items: readonly BulkItem[],
  tags: readonly string[],
): Promise<string | undefined> {
  if (tags.length === 0) return undefined
  const codes = items.flatMap(({ view }) => (view.ok && !view.reused ? [view.code] : []))
  try {
    for (let at = 0; at < codes.length; at += TAGGED_AT_ONCE) {
      const some = codes.slice(at, at + TAGGED_AT_ONCE)
      await changeProperties(deps, user.account, some, { addTags: [...tags] })
    }
  } catch (error) {
    if (!isFormError(error)) throw error
    return `Not all new links have the tags: ${error.message}`
  }
  return undefined
}

/** Characters of a file name beside each of its lines. */
const FILE_NAME_MAX = 60

async function shortenAll(context: PageContext): Promise<BulkItem[]> {
  const { deps, user, form } = context
  const { bulkMax } = deps.plans[user.account.plan]
  const file = form.file('file')
  const fromFile = file ? await urlsOfFile(file, bulkMax + 1) : []
  const fileName = file?.name.slice(0, FILE_NAME_MAX)
  const pasted = linesOf(form.raw('urls'), bulkMax + 1)
  const lines = [
    ...pasted.map((line) => ({ ...line, source: `Line ${line.line}` })),
    ...fromFile.map((line) => ({ ...line, source: `${fileName}, line ${line.line}` })),
  ]
  if (lines.length === 0) throw refuseAt('urls', 'Paste at least one URL, or choose a file.')
  if (lines.length > bulkMax) {
    const max = parts.count(bulkMax)
    throw refuseAt(
      fromFile.length > bulkMax ? 'file' : 'urls',
      `These are more than ${max} URLs: your plan accepts ${max} at once.`,
    )
  }
  return shortenLines(context, lines)
}

async function urlsOfFile(file: Blob, linesMax: number): Promise<UrlLine[]> {
  try {
    return await readUrls(file, linesMax)
  } catch (error) {
    throw error instanceof SourceError ? refuseAt('file', error.message) : error
  }
}

async function shortenLines(
  context: PageContext,
  lines: readonly (UrlLine & { source: string })[],
): Promise<BulkItem[]> {
  const { deps, user } = context
  const write = campaignWriter(context)
  const urls = lines.flatMap(({ text, problem }) =>
    problem === undefined ? [write(withScheme(text))] : [],
  )
  // If all are invalid, `bulk` reports one reason for all of them instead of one each.
  const areAllInvalid = urls.every((url) => checkUrl(deps, url) instanceof AppError)
  const views = areAllInvalid ? undefined : (await bulk(deps, user.account, urls)).results
  let next = 0
  const viewOf = ({ text, problem }: UrlLine): BulkItemView => {
    const view = problem === undefined ? views?.[next++] : undefined
    if (view?.ok) return view
    const checked = checkUrl(deps, withScheme(text))
    const reason = checked instanceof AppError ? wordingOf(checked) : view?.error
    return { ok: false, url: text, error: problem ?? reason ?? '' }
  }
  return lines.map((line, at) => ({
    id: `result-${at}`,
    source: line.source,
    text: line.text,
    view: viewOf(line),
  }))
}

interface BulkPageProps {
  items?: BulkItem[]
  /** What went wrong after the links were created. */
  problem?: string | undefined
  /** The file of the new links, line by line. */
  lines?: Html[]
  /** The text field: the whole text of a refused form, or the lines that failed. */
  pasted: string
}

const TOO_LONG =
  'What you sent is too long to be shown here again. Correct the original and send it again as a ' +
  'file, or in smaller parts.'

/** Characters of the text field. */
const PASTED_MAX = 100_000

function bulkPage(
  context: PageContext,
  { items = [], lines = [], pasted, problem }: BulkPageProps,
): Response {
  const okCount = items.filter(({ view }) => view.ok).length
  const isShort = pasted.length <= PASTED_MAX
  return page(context, {
    title: 'Bulk create',
    back: { href: '/app/links', label: 'All links' },
    ...(items.length > 0 && okCount === 0 && { status: 422 }),
    main: html`
      ${problem && parts.errorNotice(problem)}
      ${items.length > 0 && resultCards(items, lines)}
      <section class="card">
        ${
          items.length > 0 &&
          html`<h2>${okCount === items.length ? 'Create more links' : 'Correct and try again'}</h2>`
        }
        ${isShort || parts.notice('note', html`<p>${TOO_LONG}</p>`)}
        ${bulkForm(context, isShort ? pasted : '')}
      </section>`,
  })
}

/** Characters of the field of tags. */
const TAGS_LENGTH_MAX = 1640

function bulkForm(context: PageContext, pasted: string): Html {
  const { deps, user, refusal } = context
  const { bulkMax } = deps.plans[user.account.plan]
  const canRetry = refusal && isTemporary(refusal)
  return parts.form(
    user,
    '/app/links/bulk',
    [
      parts.field({
        name: 'urls',
        label: 'URLs, one per line',
        type: 'textarea',
        value: pasted,
        hint: `Up to ${parts.count(bulkMax)} at once on your plan.`,
        error: errorOf(refusal, 'urls'),
        autocomplete: 'off',
        extra: { spellcheck: 'false', rows: 8, class: 'code' },
      }),
      parts.field({
        name: 'file',
        label: 'Or a CSV file',
        type: 'file',
        hint: html`We read the <code>url</code>, <code>long_url</code> or <code>destination</code>
          column, or else the first. ${canRetry && 'Choose the file again.'}`,
        error: errorOf(refusal, 'file'),
        extra: { accept: '.csv,.tsv,.txt,text/csv,text/plain' },
      }),
      parts.field({
        ...typed(context, 'tags'),
        label: 'Tags for all new links',
        hint: 'Separated by commas.',
        autocomplete: 'off',
        extra: { maxlength: TAGS_LENGTH_MAX, spellcheck: 'false' },
      }),
      campaignFields(context),
      html`<progress data-while-sent hidden aria-label="Links are being created"></progress>
        <div class="row">
        ${parts.button('Shorten all')}
        ${parts.button('Shorten and download CSV', 'plain', {
          name: 'as',
          value: 'csv',
          'data-downloads': 'The file contains all results, failed lines first.',
        })}
      </div>
      <p class="hint after">Each new link has a passcode that is shown once: on the next page, or in
      the file. Results with very long URLs always come as a file.</p>`,
    ],
    { enctype: 'multipart/form-data', 'data-may-download': true },
  )
}

/** The results of a bulk, as a page and as a file. */

interface BulkItem {
  /** Unique on the page. */
  id: string
  /** Where the URL was: `Line 3`, or `links.csv, line 3`. */
  source: string
  text: string
  view: BulkItemView
}

type OkItem = BulkItem & { view: Extract<BulkItemView, { ok: true }> }
type FailedItem = BulkItem & { view: Extract<BulkItemView, { ok: false }> }

const isOk = (item: BulkItem): item is OkItem => item.view.ok
const isFailed = (item: BulkItem): item is FailedItem => !item.view.ok

/** Rows of a table. */
const ROWS_MAX = 100
/** Characters of all URLs and paths of a page, which contains the whole file. */
const TEXT_LENGTH_MAX = 200_000
/** Characters of a line beside its URL, with the short URL. */
const LINE_LENGTH = 110
const FILE_LENGTH_MAX = 750_000

/** A larger page takes too long to render. */
function fitsPage(items: readonly BulkItem[]): boolean {
  const length = items.reduce((sum, { text }) => sum + text.length, 0)
  return length <= TEXT_LENGTH_MAX && length + items.length * LINE_LENGTH <= FILE_LENGTH_MAX
}

const CSV_HEAD = csvLine(['code', 'short_url', 'url', 'passcode', 'created_at', 'note'])

const okLine = ({ view: { code, short_url, url, passcode, created_at, reused } }: OkItem) =>
  csvLine([code, short_url, url, passcode, created_at, reused ? 'existed before' : 'new'])

/** All results, failed ones first. If it is sent, only this file contains the passcodes. */
function bulkCsv(items: readonly BulkItem[]): string {
  const failed = items
    .filter(isFailed)
    .map(({ source, text, view }) =>
      csvLine(['', '', text, '', '', `failed (${source}): ${view.error}`]),
    )
  return [BYTE_ORDER_MARK, CSV_HEAD, ...failed, ...items.filter(isOk).map(okLine)].join('')
}

/** Failed lines first, then new links with their passcodes, then links that already existed. */
function resultCards(items: readonly BulkItem[], lines: readonly Html[]): Html {
  const failed = items.filter(isFailed)
  const ok = items.filter(isOk)
  const created = ok.filter(({ view }) => !view.reused)
  const reused = ok.filter(({ view }) => view.reused)
  const summary = [
    created.length > 0 && `${parts.plural(created.length, 'new link')}.`,
    reused.length > 0 && `${parts.plural(reused.length, 'URL')} already had a link.`,
    failed.length > 0 && `${parts.plural(failed.length, 'line')} failed.`,
  ].filter((text) => text !== false)
  const kind = failed.length === 0 ? 'good' : ok.length > 0 ? 'note' : 'bad'
  return html`
    ${parts.notice(kind, html`<p>${summary.join(' ')}</p>`)}
    ${failed.length > 0 && failedCard(failed)}
    ${created.length > 0 && createdCard(created, lines)}
    ${reused.length > 0 && reusedCard(reused)}`
}

const failedCard = (failed: readonly FailedItem[]): Html =>
  parts.card('Failed', [
    parts.table('Lines that failed', failed.slice(0, ROWS_MAX), {
      Source: ({ source }) => breakable(source),
      Reason: ({ view }) => view.error,
      URL: ({ text }) => html`<span class="code">${beginning(text)}</span>`,
    }),
    isCut(failed) && html`<p class="hint">The first ${ROWS_MAX} are shown.</p>`,
  ])

const createdCard = (created: readonly OkItem[], lines: readonly Html[]): Html =>
  parts.card('New links', [
    html`<p>Copy the passcodes now. You won’t see them again. Programs need them to change or delete
      a code through the API; the dashboard does not.</p>`,
    html`<p><button type="button" class="button primary" hidden data-needs-script
        data-save="created-csv" data-name="hopcode-new-links.csv">Download as CSV</button></p>
      <details data-without-script><summary>All new links as CSV</summary>
        <textarea id="created-csv" class="code" readonly rows="10"
          aria-label="New links as CSV">${CSV_HEAD}${lines}</textarea></details>`,
    parts.table('New links', created.slice(0, ROWS_MAX), {
      ...LINK_COLUMNS,
      Passcode: ({ view }) => html`<span class="code passcode">${view.passcode}</span>`,
    }),
    isCut(created) && html`<p class="hint">The first ${ROWS_MAX} are shown; the file has all.</p>`,
  ])

const isCut = (items: readonly unknown[]): boolean => items.length > ROWS_MAX

const reusedCard = (reused: readonly OkItem[]): Html =>
  parts.card('Existing links', [
    html`<p>You already had links for these URLs. Their passcodes were shown when they were
      created.</p>`,
    parts.table('Existing links', reused.slice(0, ROWS_MAX), LINK_COLUMNS),
    isCut(reused) && html`<p class="hint">The first ${ROWS_MAX} are shown.</p>`,
  ])

const LINK_COLUMNS = {
  Source: ({ source }: OkItem) => breakable(source),
  'Short URL': ({ id, view }: OkItem) =>
    shortUrl(view.short_url, { id, href: linkPath(view.code) }),
  Destination: ({ view }: OkItem) => destination(view.url, linkPath(view.code)),
}

const LINE_SHOWN_MAX = 100
const beginning = (text: string): string =>
  text.length > LINE_SHOWN_MAX ? `${text.slice(0, LINE_SHOWN_MAX)}…` : text

/** Allows line breaks only in a long file name, also within a word. */
const breakable = (text: string) =>
  html`<span class="${text.length > 20 ? 'long' : 'short-text'}">${text}</span>`
