import { type Html, html, type Value } from '../../lib/html.ts'
import { batchTurns } from '../../lib/turns.ts'
import type { BulkItemView } from '../../links/schema.ts'
import { csvLine } from '../csv.ts'
import * as parts from './components.ts'
import { destination, linkPath, shortUrl } from './link-parts.ts'

/** What became of each URL of a bulk, as a page and as a file. */

export interface BulkItem {
  /** Where the URL stood: `Line 3`, `links.csv, line 3`. */
  place: string
  text: string
  view: BulkItemView
}

type Good = Extract<BulkItemView, { ok: true }>
type Bad = Extract<BulkItemView, { ok: false }>

interface Rows {
  failed: { place: string; text: string; error: string }[]
  made: { place: string; view: Good }[]
  reused: { place: string; view: Good }[]
}

export function rowsOf(items: readonly BulkItem[]): Rows {
  const rows: Rows = { failed: [], made: [], reused: [] }
  for (const { place, text, view } of items) {
    if (!view.ok) rows.failed.push({ place, text, error: view.error })
    else if (view.reused) rows.reused.push({ place, view })
    else rows.made.push({ place, view })
  }
  return rows
}

const COLUMNS = ['code', 'short_url', 'url', 'passcode', 'created_at', 'note']

/** Rows of a page. */
const ROWS_MAX = 100
/** Characters of all URLs of a page, which has them in its hidden file too. */
const TEXT_LENGTH_MAX = 100_000

/** Whether a page may have room for all results: a file has in any case. */
export const isForPage = (items: readonly BulkItem[]): boolean =>
  items.length <= ROWS_MAX &&
  items.reduce((length, { text }) => length + text.length, 0) <= TEXT_LENGTH_MAX

/** All results, the failed ones first. The one place where the passcodes are, if it is sent. */
export function bulkCsv(items: readonly BulkItem[]): string {
  const bad = items.filter((item): item is BulkItem & { view: Bad } => !item.view.ok)
  const good = items.flatMap(({ view }) => (view.ok ? [view] : []))
  return [
    csvLine(COLUMNS),
    ...bad.map(({ place, text, view }) =>
      csvLine(['', '', text, '', '', `failed (${place}): ${view.error}`]),
    ),
    ...good.map(goodLine),
  ].join('')
}

const goodLine = ({ code, short_url, url, passcode, created_at, reused }: Good) =>
  csvLine([code, short_url, url, passcode, created_at, reused ? 'existed before' : 'new'])

/** Failed ones first, then new ones with their passcodes, then those that the account had. */
export async function resultCards({ failed, made, reused }: Rows): Promise<Html> {
  const summary = [
    made.length > 0 && `${parts.plural(made.length, 'new link')}.`,
    reused.length > 0 && `${parts.plural(reused.length, 'URL')} had one already.`,
    failed.length > 0 && `${parts.plural(failed.length, 'line')} failed.`,
  ].filter((text) => text !== false)
  const kind = failed.length === 0 ? 'good' : made.length + reused.length > 0 ? 'note' : 'bad'
  return html`
    ${parts.notice(kind, html`<p>${summary.join(' ')}</p>`)}
    ${failed.length > 0 && (await failedCard(failed))}
    ${made.length > 0 && (await madeCard(made))}
    ${reused.length > 0 && (await reusedCard(reused))}`
}

/** Rows before other requests get their turn. */
const ROWS_AT_ONCE = 100

const inTurns = <Item>(items: readonly Item[], row: (item: Item, at: number) => Value[]) =>
  batchTurns.map(items, ROWS_AT_ONCE, row)

const failedCard = async (failed: Rows['failed']): Promise<Html> =>
  parts.card('Failed', [
    parts.table({
      caption: 'Lines that failed',
      columns: [{ label: 'Where' }, { label: 'Reason' }, { label: 'URL' }],
      rows: await inTurns(failed.slice(0, ROWS_MAX), ({ place, text, error }) => [
        ...[longText(place), error, html`<span class="code">${beginning(text)}</span>`],
      ]),
    }),
    failed.length > ROWS_MAX && html`<p class="hint">The first ${ROWS_MAX} are shown.</p>`,
  ])

const madeCard = async (made: Rows['made']): Promise<Html> =>
  parts.card('New links', [
    html`<p>The passcodes are shown this once. Programs need them to change or delete a code
      through the API; here in the dashboard your account is enough.</p>`,
    html`<pre id="made-csv" hidden>${[
      csvLine(COLUMNS),
      ...made.map(({ view }) => goodLine(view)),
    ].map((line) => line.replace('\r\n', '\n'))}</pre>
      <p><button type="button" class="button primary" hidden data-needs-script
        data-save="made-csv" data-name="hopcode-new-links.csv">Download as CSV</button></p>`,
    parts.table({
      caption: 'New links',
      columns: [...COMMON, { label: 'Passcode' }],
      rows: await inTurns(made, ({ place, view }, at) => [
        ...common(place, view, `made-${at}`),
        html`<span class="code passcode">${view.passcode}</span>`,
      ]),
    }),
  ])

const reusedCard = async (reused: Rows['reused']): Promise<Html> =>
  parts.card('You had these already', [
    html`<p>Nothing new was made for them. Their passcodes were shown when they were created.</p>`,
    parts.table({
      caption: 'Links that were there before',
      columns: COMMON,
      rows: await inTurns(reused, ({ place, view }, at) => common(place, view, `reused-${at}`)),
    }),
  ])

const LINE_SHOWN_MAX = 100
const beginning = (text: string): string =>
  text.length > LINE_SHOWN_MAX ? `${text.slice(0, LINE_SHOWN_MAX)}…` : text

/** A file's name may be one long word, which must break somewhere. */
const longText = (text: string) =>
  /\S{20}/.test(text) ? html`<span class="long">${text}</span>` : text

const COMMON = [{ label: 'Where' }, { label: 'Short URL' }, { label: 'Destination' }]

const common = (place: string, { code, short_url, url }: Good, id: string) => [
  ...[
    longText(place),
    shortUrl(short_url, { id, href: linkPath(code) }),
    destination(url, linkPath(code)),
  ],
]
