import { csvLine } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import type { BulkItemView } from '../../links/schema.ts'
import * as parts from './components.ts'
import { destination, linkPath, shortUrl } from './link-parts.ts'

/** The results of a bulk, as a page and as a file. */

export interface BulkItem {
  /** Where the URL was: `Line 3`, or `links.csv, line 3`. */
  place: string
  text: string
  view: BulkItemView
}

type OkView = Extract<BulkItemView, { ok: true }>

interface ResultRow<View = BulkItemView> {
  /** Unique on the page. */
  id: string
  place: string
  text: string
  view: View
}

interface BulkGroups {
  failed: ResultRow<Extract<BulkItemView, { ok: false }>>[]
  created: ResultRow<OkView>[]
  reused: ResultRow<OkView>[]
}

export function groupItems(items: readonly BulkItem[]): BulkGroups {
  const groups: BulkGroups = { failed: [], created: [], reused: [] }
  for (const [at, { view, ...item }] of items.entries()) {
    const row = { id: `result-${at}`, ...item }
    if (!view.ok) groups.failed.push({ ...row, view })
    else if (view.reused) groups.reused.push({ ...row, view })
    else groups.created.push({ ...row, view })
  }
  return groups
}

/** Rows of a page. */
const ROWS_MAX = 100
/** Characters of all URLs of a page, which contains them also in its hidden file. */
const TEXT_LENGTH_MAX = 100_000

/** Whether a page probably has room for all results. */
export const fitsPage = (items: readonly BulkItem[]): boolean =>
  items.length <= ROWS_MAX &&
  items.reduce((length, { text }) => length + text.length, 0) <= TEXT_LENGTH_MAX

const CSV_HEAD = csvLine(['code', 'short_url', 'url', 'passcode', 'created_at', 'note'])

const okLine = ({ code, short_url, url, passcode, created_at, reused }: OkView) =>
  csvLine([code, short_url, url, passcode, created_at, reused ? 'existed before' : 'new'])

/** All results, failed ones first. If it is sent, only this file contains the passcodes. */
export function bulkCsv(items: readonly BulkItem[]): string {
  const failed = items.flatMap(({ place, text, view }) =>
    view.ok ? [] : [csvLine(['', '', text, '', '', `failed (${place}): ${view.error}`])],
  )
  const ok = items.flatMap(({ view }) => (view.ok ? [okLine(view)] : []))
  return [CSV_HEAD, ...failed, ...ok].join('')
}

/** Failed lines first, then new links with their passcodes, then links that already existed. */
export function resultCards({ failed, created, reused }: BulkGroups): Html {
  const summary = [
    created.length > 0 && `${parts.plural(created.length, 'new link')}.`,
    reused.length > 0 && `${parts.plural(reused.length, 'URL')} already had a link.`,
    failed.length > 0 && `${parts.plural(failed.length, 'line')} failed.`,
  ].filter((text) => text !== false)
  const kind = failed.length === 0 ? 'good' : created.length + reused.length > 0 ? 'note' : 'bad'
  return html`
    ${parts.notice(kind, html`<p>${summary.join(' ')}</p>`)}
    ${failed.length > 0 && failedCard(failed)}
    ${created.length > 0 && createdCard(created)}
    ${reused.length > 0 && reusedCard(reused)}`
}

const failedCard = (failed: BulkGroups['failed']): Html =>
  parts.card('Failed', [
    parts.table('Lines that failed', failed.slice(0, ROWS_MAX), {
      Source: ({ place }) => breakable(place),
      Reason: ({ view }) => view.error,
      URL: ({ text }) => html`<span class="code">${beginning(text)}</span>`,
    }),
    failed.length > ROWS_MAX && html`<p class="hint">The first ${ROWS_MAX} are shown.</p>`,
  ])

const createdCard = (created: BulkGroups['created']): Html =>
  parts.card('New links', [
    html`<p>Copy the passcodes now. You won’t see them again. Programs need them to change or delete
      a code through the API; the dashboard does not.</p>`,
    html`<pre id="created-csv" hidden>${[CSV_HEAD, ...created.map(({ view }) => okLine(view))].map(
      (line) => line.replace('\r\n', '\n'),
    )}</pre>
      <p><button type="button" class="button primary" hidden data-needs-script
        data-save="created-csv" data-name="hopcode-new-links.csv">Download as CSV</button></p>`,
    parts.table('New links', created, {
      ...LINK_COLUMNS,
      Passcode: ({ view }) => html`<span class="code passcode">${view.passcode}</span>`,
    }),
  ])

const reusedCard = (reused: BulkGroups['reused']): Html =>
  parts.card('Existing links', [
    html`<p>You already had links for these URLs. Their passcodes were shown when they were
      created.</p>`,
    parts.table('Existing links', reused, LINK_COLUMNS),
  ])

const LINK_COLUMNS = {
  Source: ({ place }: ResultRow<OkView>) => breakable(place),
  'Short URL': ({ id, view }: ResultRow<OkView>) =>
    shortUrl(view.short_url, { id, href: linkPath(view.code) }),
  Destination: ({ view }: ResultRow<OkView>) => destination(view.url, linkPath(view.code)),
}

const LINE_SHOWN_MAX = 100
const beginning = (text: string): string =>
  text.length > LINE_SHOWN_MAX ? `${text.slice(0, LINE_SHOWN_MAX)}…` : text

/** Allows line breaks only in a long file name, also within a word. */
const breakable = (text: string) =>
  html`<span class="${text.length > 20 ? 'long' : 'short-text'}">${text}</span>`
