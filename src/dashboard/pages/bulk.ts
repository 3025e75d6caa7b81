import { resolveLink } from '../../addresses/resolve.ts'
import { AppError, REFUSALS } from '../../errors.ts'
import { unreadText } from '../../import/outcomes.ts'
import {
  hasPathColumn,
  linesOf,
  readUrls,
  type UrlFile,
  type UrlLine,
} from '../../import/read-urls.ts'
import { SourceError } from '../../import/source.ts'
import type { Code } from '../../lib/code.ts'
import { BYTE_ORDER_MARK, CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import { checkUrl } from '../../links/check.ts'
import { bulk, createdView, shorten } from '../../links/create.ts'
import { changeProperties } from '../../links/properties.ts'
import { BAD_TAGS, type BulkItemView, PropertiesBody } from '../../links/schema.ts'
import { withScheme } from '../../links/url.ts'
import { type PageContext, spendWrite } from '../auth/guard.ts'
import { campaignFields, campaignWriter } from '../cards/campaign.ts'
import { newPath } from '../cards/create-link.ts'
import { signedInPages } from '../page-routes.ts'
import {
  FormRefusal,
  fileResponse,
  isFormError,
  isTemporary,
  refuseAt,
  wordingOf,
} from '../responses.ts'
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
      const { items, ignored } = await shortenAll(context)
      const problem = await addTags(context, items, tags)
      return resultResponse(context, { items, ignored, problem })
    },
  },
})

/** A page, or a file if the URLs are so long that a page with all passcodes would be too large. */
async function resultResponse(
  context: PageContext,
  { items, ignored, problem }: BulkResult & { problem: string | undefined },
): Promise<Response> {
  const isFileWanted = context.form.text('as') === 'csv'
  const failed = items.filter(({ view }) => !view.ok)
  if (failed.length === items.length || (!isFileWanted && fitsPage(items))) {
    const pasted = textOf(failed)
    const created = items.filter(isOk).filter(({ view }) => !view.reused)
    const lines = await pageSlices.map(created, LINES_AT_ONCE, (item) => html`${okLine(item)}`)
    return bulkPage(context, { items, ignored, lines, pasted, problem })
  }
  return fileResponse(bulkCsv(items), { name: 'hopcode-new-links.csv', type: CSV_TYPE })
}

/** The lines as they can be pasted again. */
function textOf(items: readonly BulkItem[]): string {
  if (items.every(({ path }) => path === undefined)) return items.map(({ text }) => text).join('\n')
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const lines = items.map(({ text, path = '' }) => [text, path].map(quoted).join())
  return ['url,path', ...lines].join('\n')
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

interface BulkResult {
  items: BulkItem[]
  /** Names of columns that were not read. */
  ignored: string[]
}

async function shortenAll(context: PageContext): Promise<BulkResult> {
  const { deps, user, form } = context
  const { bulkMax } = deps.plans[user.account.plan]
  const file = form.file('file')
  const fromFile = await urlsOf(file, { field: 'file', linesMax: bulkMax + 1 })
  const fileName = file?.name.slice(0, FILE_NAME_MAX)
  const text = form.raw('urls')
  const pasted = hasPathColumn(text)
    ? await urlsOf(new Blob([text]), { field: 'urls', linesMax: bulkMax + 1 })
    : { lines: linesOf(text, bulkMax + 1), ignored: [] }
  const lines = [
    ...pasted.lines.map((line) => ({ ...line, source: `Line ${line.line}` })),
    ...fromFile.lines.map((line) => ({ ...line, source: `${fileName}, line ${line.line}` })),
  ]
  if (lines.length === 0) throw refuseAt('urls', 'Paste at least one URL, or choose a file.')
  if (lines.length > bulkMax) {
    const max = parts.count(bulkMax)
    throw refuseAt(
      fromFile.lines.length > bulkMax ? 'file' : 'urls',
      `These are more than ${max} URLs: your plan accepts ${max} at once.`,
    )
  }
  const write = campaignWriter(context)
  const written = await pageSlices.map(lines, LINES_AT_ONCE, (line) =>
    line.problem ? line : { ...line, text: write(line.text) },
  )
  const items = await shortenLines(context, written)
  return { items, ignored: [...pasted.ignored, ...fromFile.ignored] }
}

async function urlsOf(
  file: Blob | undefined,
  { field, linesMax }: { field: string; linesMax: number },
): Promise<UrlFile> {
  if (!file) return { lines: [], ignored: [] }
  try {
    return await readUrls(file, linesMax)
  } catch (error) {
    throw error instanceof SourceError ? refuseAt(field, error.message) : error
  }
}

type SourceLine = UrlLine & { source: string }

/** Lines with a path of their own are created after the others, which are refused as a whole. */
async function shortenLines(
  context: PageContext,
  lines: readonly SourceLine[],
): Promise<BulkItem[]> {
  const { deps, user } = context
  const isPlain = ({ path, problem }: UrlLine) => path === undefined && problem === undefined
  const urls = lines.filter(isPlain).map(({ text }) => withScheme(text))
  // If all are invalid, `bulk` reports one reason for all of them instead of one each.
  const areAllInvalid = urls.every((url) => checkUrl(deps, url) instanceof AppError)
  const views = areAllInvalid ? undefined : (await bulk(deps, user.account, urls)).results
  const named = await shortenNamed(context, lines)
  let next = 0
  const viewOf = (line: SourceLine): BulkItemView => {
    const { text, problem } = line
    const view = isPlain(line) ? views?.[next++] : named.get(line)
    if (view?.ok || (view && named.has(line))) return view
    const checked = checkUrl(deps, withScheme(text))
    const reason = checked instanceof AppError ? wordingOf(checked) : view?.error
    return { ok: false, url: text, error: problem ?? reason ?? '' }
  }
  return lines.map((line, at) => ({
    id: `result-${at}`,
    source: line.source,
    text: line.text,
    path: line.path,
    view: viewOf(line),
  }))
}

/** Links that are created at once: they share commits. */
const NAMED_AT_ONCE = 20

/** Creates the links that have a path of their own. Each is refused alone. */
async function shortenNamed(context: PageContext, lines: readonly SourceLine[]) {
  const named = lines.filter(({ path, problem }) => path !== undefined && problem === undefined)
  const views = new Map<SourceLine, BulkItemView>()
  for (let at = 0; at < named.length; at += NAMED_AT_ONCE) {
    const some = named.slice(at, at + NAMED_AT_ONCE)
    const done = await Promise.all(some.map((line) => shortenAs(context, line)))
    for (const [i, line] of some.entries()) views.set(line, done[i] as BulkItemView)
  }
  return views
}

/** The link with the path, which the account may have for the URL already. */
async function shortenAs(
  { deps, user }: PageContext,
  { text, path: typed = '' }: UrlLine,
): Promise<BulkItemView> {
  const { account } = user
  const { addresses, data } = deps
  try {
    const url = checkUrl(deps, withScheme(text))
    if (url instanceof AppError) throw url
    const path = newPath({ deps, user }, typed, data.domains.defaultOf(account.id))
    const found = path && resolveLink(deps, addresses.alias(path.address))
    const isSame = found?.accountId === account.id && found.url === url.text
    const view = isSame
      ? createdView(addresses, { ...found, reused: true }, '')
      : await shorten(deps, account, url, path?.fields, { reuse: !path })
    const link = data.links.findByCode(view.code as Code)
    return { ok: true, ...view, ...(link && { short_url: addresses.display(link) }) }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const reason = error instanceof FormRefusal ? error.errors.code : wordingOf(error)
    const inUse = error.code === 'code_in_use' && REFUSALS.code_in_use.message(typed)
    return { ok: false, url: text, error: inUse || (reason ?? error.message) }
  }
}

interface BulkPageProps extends Partial<BulkResult> {
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
  { items = [], ignored = [], lines = [], pasted, problem }: BulkPageProps,
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
      ${
        ignored.length > 0 &&
        parts.notice(
          'note',
          html`<p>${unreadText(ignored)} An import reads titles, tags and dates.
        </p>`,
        )
      }
      <section class="card" id="again">
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
        hint: html`Up to ${parts.count(bulkMax)} at once on your plan. With paths of your own: a
          first line <code>url,path</code>, then lines such as
          <code>https://example.com/a,spring-sale</code>.`,
        error: errorOf(refusal, 'urls'),
        autocomplete: 'off',
        extra: { spellcheck: 'false', rows: 8, class: 'code' },
      }),
      parts.field({
        name: 'file',
        label: 'Or a CSV file',
        type: 'file',
        hint: html`We read the <code>url</code>, <code>long_url</code> or <code>destination</code>
          column, or else the first, and your own paths in a column <code>path</code>.
          ${canRetry && 'Choose the file again.'}`,
        error: errorOf(refusal, 'file'),
        extra: { accept: '.csv,.tsv,.txt,text/csv,text/plain' },
      }),
      parts.field({
        ...typed(context, 'tags'),
        label: 'Tags for all new links',
        hint: 'Separated by commas.',
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
  path?: string | undefined
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
    html`<p><a href="#again">Correct them and try again</a></p>`,
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
