import { Elysia } from 'elysia'
import type { AppError } from '../../errors.ts'
import { SMALL_BODY_MAX } from '../../http/body.ts'
import { html } from '../../lib/html.ts'
import { bulk, judgeUrl } from '../../links/bulk.ts'
import { fileAnswer } from '../answers.ts'
import { attempt, isForLater, refusedAs } from '../attempt.ts'
import { type BulkItem, bulkCsv, resultCards, rowsOf } from '../bulk-result.ts'
import * as parts from '../components.ts'
import { CSV_TYPE, linesOf, parseUrlFile, type UrlLine } from '../csv.ts'
import type { DashboardDeps } from '../deps.ts'
import type { Form } from '../form.ts'
import { signedIn, spendWrite, type Visitor } from '../guard.ts'
import { page } from '../layout.ts'
import { count } from '../link-parts.ts'

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
      const { items } = tried.done
      if (form.text('as') === 'csv' && items.some(({ view }) => view.ok)) {
        return fileAnswer(bulkCsv(items), { name: 'hopcode-new-links.csv', type: CSV_TYPE })
      }
      const failed = items.filter(({ view }) => !view.ok)
      return bulkPage(deps, visitor, { items, pasted: failed.map(({ text }) => text).join('\n') })
    })

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
  const lines = [
    ...linesOf(form.raw('urls'), bulkMax + 1).map((line) => ({
      ...line,
      place: `Line ${line.line}`,
    })),
    ...fromFile.map((line) => ({ ...line, place: `${file?.name}, line ${line.line}` })),
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
  const isHopeless = urls.every((url) => 'refusal' in judgeUrl(deps, url))
  const views = isHopeless ? undefined : (await bulk(deps, account, urls)).results
  let next = 0
  return lines.map(({ place, text, problem }) => {
    if (problem !== undefined) {
      return { place, text, view: { ok: false, url: text, error: problem } }
    }
    const view = views?.[next++]
    if (view) return { place, text, view }
    const judged = judgeUrl(deps, text)
    const error = 'refusal' in judged ? judged.refusal.message : ''
    return { place, text, view: { ok: false, url: text, error } }
  })
}

interface Shown {
  items?: BulkItem[]
  refused?: AppError
  problem?: string
  field?: 'urls' | 'file'
  /** What the text field holds: all of a form that was refused, or the lines that failed. */
  pasted?: string
}

async function bulkPage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Promise<Response> {
  const { items = [], refused, problem } = shown
  const isFailed = problem !== undefined || (items.length > 0 && !items.some(({ view }) => view.ok))
  return page(visitor, {
    ...{ title: 'Many links at once', current: 'links', status: isFailed ? 422 : 200 },
    ...(refused && refusedAs(refused)),
    main: html`
      <p><a href="/app/links">All links</a></p>
      ${refused && parts.notice('bad', html`<p>${refused.message}</p>`)}
      ${items.length > 0 && (await resultCards(rowsOf(items)))}
      <section class="card">
        ${items.length > 0 && html`<h2>${isAllGood(items) ? 'More' : 'Correct and try again'}</h2>`}
        ${bulkForm(deps, visitor, shown)}
      </section>`,
  })
}

const isAllGood = (items: readonly BulkItem[]) => items.every(({ view }) => view.ok)

function bulkForm(deps: DashboardDeps, visitor: Visitor, shown: Shown) {
  const { pasted = '', problem, field, refused } = shown
  const errorOf = (name: string) => (field === name ? problem : undefined)
  const { bulkMax } = deps.plans[visitor.account.plan]
  const lost = refused && isForLater(refused) ? ' Choose it again after a refusal.' : ''
  return parts.form({
    ...{ action: '/app/links/bulk', csrf: visitor.csrf },
    extra: { enctype: 'multipart/form-data' },
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
      follows, or in the file that you download in its place.</p>`,
    ],
  })
}
