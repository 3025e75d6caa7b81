import { hasRole } from '../../accounts/roles.ts'
import { AppError } from '../../errors.ts'
import { EXPORT_FORMATS, exportFile } from '../../import/export.ts'
import { formatOf } from '../../import/formats.ts'
import { type ImportJob, ROWS_MAX } from '../../import/jobs.ts'
import { isCreated, OUTCOME_WORDS, OUTCOMES, unreadText } from '../../import/outcomes.ts'
import { countRows, type Summary } from '../../import/run.ts'
import { textOf } from '../../import/text.ts'
import { isoTime } from '../../lib/clock.ts'
import { BYTE_ORDER_MARK, CSV_TYPE } from '../../lib/csv.ts'
import { type Html, html, visible } from '../../lib/html.ts'
import { type CurrentUser, type PageContext, spendWrite } from '../auth/guard.ts'
import { editor, signedInPages } from '../page-routes.ts'
import { fileResponse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/links/import'

/** Import of a file of another service, and export of all links. */
export const importPages = signedInPages({
  'GET /app/links/import': editor(importPage, {
    offers: [
      { label: 'Import links', words: 'move bitly yourls csv' },
      { label: 'Export links', words: 'download csv' },
    ],
  }),
  'POST /app/links/import': step(checkFile),
  'POST /app/links/import/domains': step(chooseDomains),
  'POST /app/links/import/start': step(({ deps, user }) => deps.imports.start(user.account)),
  'GET /app/links/import/report.csv': editor(async ({ deps, user }) => {
    const job = deps.imports.findByAccount(user.account.id)
    if (!job?.summary) throw new AppError('page_not_found')
    const body = await deps.unsent.generate(
      user.account.id,
      forSpreadsheets(textOf(job.report, 'utf-8')),
    )
    return fileResponse(body, { name: 'hopcode-import.csv', type: CSV_TYPE })
  }),
  // With the passcodes of the links.
  'GET /app/links/import/export/:format': editor(async ({ deps, user, params }) => {
    const format = EXPORT_FORMATS.find((one) => one === params.format)
    if (!format) throw new AppError('page_not_found')
    const withHistory = hasRole(user.role, 'admin')
    const chunks = exportFile(deps, user.account.id, format, { withHistory })
    const file = format === 'csv' ? forSpreadsheets(chunks) : chunks
    const body = await deps.unsent.generate(user.account.id, file)
    const name = `hopcode-${isoTime(deps.clock()).slice(0, 10)}.${format}`
    const type = format === 'csv' ? CSV_TYPE : 'application/x-ndjson'
    return fileResponse(body, { name, type })
  }),
})

/** A form of the import. One form has the file, another a field for each of its domains. */
function step(take: (context: PageContext) => void) {
  return {
    role: 'editor' as const,
    bulk: 'file' as const,
    page: importPage,
    run: (context: PageContext) => {
      spendWrite(context)
      take(context)
      return PATH
    },
  }
}

async function* forSpreadsheets(csv: AsyncIterable<string>): AsyncGenerator<string, void> {
  yield BYTE_ORDER_MARK
  yield* csv
}

const PASSWORDS = {
  keep: 'Keep the passwords, and pause links whose password the file does not have',
  pause: 'Import them paused',
  skip: 'Leave them out',
  open: 'Import them without a password',
}
const DATE_FORMATS = { '': 'Year first, as in 2024-01-31', dmy: '31.01.2024', mdy: '01/31/2024' }

function checkFile({ deps, user: { account, person }, form }: PageContext): void {
  const file = form.file('file')
  if (!file) throw new AppError('invalid_value', 'Choose a file.')
  deps.imports.check(
    account,
    { name: file.name.slice(0, 100), blob: file, isTrusted: person.isOwner },
    {
      format: 'auto',
      passwords: chosen(form, 'passwords', PASSWORDS) ?? 'keep',
      dateFormat: chosen(form, 'date_format', DATE_FORMATS) || undefined,
      withoutHits: form.text('without_hits') === '1',
      skipDisabled: form.text('skip_disabled') === '1',
      appendPaths: form.text('append_paths') === '1',
    },
  )
}

function chooseDomains({ deps, user: { account }, form }: PageContext): void {
  const offered = deps.imports.findByAccount(account.id)?.domains?.listed ?? []
  const wanted = form.all('domain')
  const domains = offered.map(({ domain }) => domain).filter((domain) => wanted.includes(domain))
  if (domains.length === 0) throw new AppError('invalid_value', 'Choose at least one domain.')
  deps.imports.choose(account, domains)
}

function chosen<Name extends string>(form: Form, field: string, choices: Record<Name, string>) {
  const value = form.text(field)
  return Object.hasOwn(choices, value) ? (value as Name) : undefined
}

const choicesOf = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels).map(([value, label]) => ({ value, label }))

function importPage(context: PageContext): Response {
  const { deps, user } = context
  const job = deps.imports.findByAccount(user.account.id)
  const isRunning = job?.phase === 'checking' || job?.phase === 'importing'
  return page(context, {
    title: 'Import and export',
    back: { href: '/app/links', label: 'All links' },
    main: html`
      ${job && jobCard(context, job)}
      ${!isRunning && uploadCard(user, job)}
      ${parts.card(
        'Export',
        html`<p>All your links as one file. JSON Lines has everything about each link, and another
          Hopcode imports it. CSV is for spreadsheets and for the importers of other services.</p>
          <div class="row">
            ${parts.linkButton('Export as JSON Lines', `${PATH}/export/jsonl`)}
            ${parts.linkButton('Export as CSV', `${PATH}/export/csv`)}
          </div>`,
      )}`,
  })
}

function uploadCard(user: CurrentUser, job: ImportJob | undefined): Html {
  return parts.card(
    'Import links of another service',
    parts.form(
      user,
      PATH,
      [
        html`<p>Links keep their paths, dates, hits, titles and tags. The file is checked first:
          nothing is imported before you have seen the result.</p>`,
        parts.field({
          name: 'file',
          label: 'File',
          type: 'file',
          hint: `Of Shlink, YOURLS, Kutt, Chhoto URL, Sink, Bitly, Dub, Short.io, Rebrandly, golink,
            TinyURL, Polr, Lstu or Hopcode, or a spreadsheet as CSV. Up to ${
              user.person.isOwner ? '32 MiB' : `8 MiB and ${parts.count(ROWS_MAX)} rows`
            }.`,
          required: true,
        }),
        parts.select({
          name: 'passwords',
          label: 'Links with a password',
          choices: choicesOf(PASSWORDS),
          value: 'keep',
        }),
        parts.select({
          name: 'date_format',
          label: 'Dates of the file',
          choices: choicesOf(DATE_FORMATS),
          value: '',
        }),
        parts.checkbox({
          name: 'skip_disabled',
          label: 'Leave out disabled links, which are imported paused otherwise',
        }),
        parts.checkbox({
          name: 'append_paths',
          label:
            'Add paths behind an address to its destination, as Shlink does where it is set so',
        }),
        parts.checkbox({ name: 'without_hits', label: 'Start all hits at 0' }),
        // The import of a checked file is the next step.
        parts.button(
          'Check the file',
          job?.phase === 'checked' || job?.phase === 'choosing' ? 'plain' : 'primary',
        ),
      ],
      { enctype: 'multipart/form-data' },
    ),
  )
}

function jobCard(context: PageContext, job: ImportJob): Html {
  const { user } = context
  const { phase, file, problem, summary } = job
  if (phase === 'failed') {
    return parts.notice('bad', html`<p><strong>${file.name}</strong> ${problem ?? ''}</p>`)
  }
  if (phase === 'checking' || phase === 'importing') return progressCard(job)
  if (phase === 'choosing') return domainsCard(context, job)
  const created = summary ? countRows(summary, isCreated) : 0
  const links = parts.plural(created, 'link')
  const title = phase === 'done' ? `${links} imported` : `Check of ${file.name}`
  return parts.card(
    title,
    html`${summary && outcomeTable(summary, phase)}
      ${job.problems.length > 0 && problemTable(job)}
      <div class="row">
        ${
          phase === 'checked' &&
          created > 0 &&
          parts.buttonForm(user, `${PATH}/start`, `Import ${links}`, { look: 'primary' })
        }
        ${
          // They are the newest ones of the list, whatever their dates are.
          phase === 'done' &&
          created > 0 &&
          parts.linkButton('See these links', '/app/links', 'primary')
        }
        ${parts.linkButton('Download the report', `${PATH}/report.csv`)}
      </div>`,
  )
}

function domainsCard({ deps, user }: PageContext, job: ImportJob): Html {
  const { listed = [], others = 0, without = 0 } = job.domains ?? {}
  const { addresses } = deps
  const host = addresses.shownHost(addresses.primary.id)
  return parts.card(
    `Which links of ${job.file.name}?`,
    parts.form(user, `${PATH}/domains`, [
      html`<p>The file has links of several domains. Links of a domain of this service stay on it.
        Links of other domains keep their paths on ${host}; if two of these
        have the same path, the domain with more links keeps it.</p>`,
      html`<fieldset><legend>Domains</legend>
        ${listed.map(
          ({ domain, rows, isOwn }) => html`<p class="check"><label>
            <input type="checkbox" name="domain" value="${domain}"${isOwn && html` checked`}>
            ${visible(domain)} <small>${parts.plural(rows, 'link')}${isOwn && OWN}</small>
            </label></p>`,
        )}</fieldset>`,
      without > 0 &&
        html`<p>${parts.plural(without, 'link')} without a domain will be imported too.</p>`,
      others > 0 &&
        html`<p>${parts.plural(others, 'more domain')} with fewer links: import them with the
          command <code>hopcode import</code>.</p>`,
      parts.button('Check these links'),
    ]),
  )
}

const OWN = ', a domain of this service'

/** Renews itself; without scripts the link does. */
function progressCard({ phase, file, done, rows: total }: ImportJob): Html {
  const label = phase === 'checking' ? `Checking ${file.name}` : `Importing ${file.name}`
  const value = total === undefined ? html`` : html`value="${done}" max="${total}"`
  return html`<section class="card" hx-get="${PATH}" hx-trigger="every 1s" hx-target="#main"
      hx-select="#main" hx-swap="outerHTML">
    <h2>${label}</h2>
    <progress aria-label="${label}" ${value}></progress>
    <p>${parts.count(done)}${total !== undefined && ` of ${parts.count(total)}`} rows</p>
    <noscript>${parts.linkButton('Show the progress', PATH)}</noscript>
  </section>`
}

function outcomeTable(
  { format, counts, hits, lost, unread }: Summary,
  phase: ImportJob['phase'],
): Html {
  const { label, note } = formatOf(format)
  const lostText = Object.entries(lost).map(([name, n]) => `${parts.count(n)} × ${name}`)
  const rows = OUTCOMES.map((outcome) => [outcome, counts[outcome] ?? 0] as const).filter(
    ([, n]) => n > 0,
  )
  return html`<p>Recognized as ${label}. ${note}
      ${hits > 0 && `Hits without dates: ${parts.count(hits)}.`}
      ${lostText.length > 0 && `Hopcode does not have: ${lostText.join(', ')}.`}
      ${visible(unreadText(unread))}</p>
    ${parts.table(
      phase === 'done' ? 'Result of the import' : 'What the import will do',
      rows,
      {
        Result: ([outcome]) => sentence(OUTCOME_WORDS[outcome]),
        Rows: { cell: ([, n]) => parts.count(n), isNumber: true },
      },
      { isNarrow: true },
    )}`
}

const problemTable = ({ problems }: ImportJob): Html =>
  parts.table('The first rows that are not imported', problems, {
    Row: ({ line }) => String(line),
    Path: ({ path }) => html`<code>/${visible(path.slice(0, 100))}</code>`,
    Result: ({ outcome }) => sentence(OUTCOME_WORDS[outcome]),
    Reason: ({ message }) => message.slice(0, 300),
  })

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
