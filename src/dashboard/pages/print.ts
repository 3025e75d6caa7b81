import { hasRole } from '../../accounts/roles.ts'
import { resolveLink } from '../../addresses/resolve.ts'
import { CAPTION_LENGTH_MAX, PRINT_FORMATS } from '../../draw/options.ts'
import { FORMATS, PAPERS, type Sheet } from '../../draw/sheet.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { type DetailedLink, withDetails } from '../../links/properties.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { exportLinks } from '../../lists/export.ts'
import type { PageContext, Query } from '../auth/guard.ts'
import { keepPrinted, keepRef } from '../cards/link-qr.ts'
import { type PageFunction, signedInPages, viewer } from '../page-routes.ts'
import {
  captionText,
  LABELS_MAX,
  type NumberName,
  numberRule,
  PREVIEW_HINT,
  type PrintChoice,
  readChoice,
  sheetsOf,
} from '../print-choice.ts'
import { zipOf } from '../print-zip.ts'
import { FormRefusal, fileResponse, noContent, refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { filterOf, parseTableQuery } from '../ui/link-table.ts'
import { FORMATS_PATH } from './label-formats.ts'

/** The codes of many links: sheets of labels to print, and a ZIP of images. */

const PATH = '/app/print'
const IMAGES_MAX = 1000
/** Sheets that the page shows at first. Each takes a tenth of a second. */
const SHOWN_SHEETS = 3

export const printPages = signedInPages({
  [`GET ${PATH}`]: viewer(printPage, {
    offers: [{ label: 'Print labels', words: 'sheet pdf stickers tables' }],
  }),
  [`GET ${PATH}/page.svg`]: viewer(async (context) => {
    const { deps, user, query } = context
    const { sheets } = await chosenSheets(context)
    const sheet = sheets[Number(query.sheet ?? '1') - 1]
    if (!sheet) throw new AppError('page_not_found')
    const svg = await deps.images.sheetSvg(sheet, user.account.id)
    return fileResponse(svg, { name: 'labels.svg', type: 'image/svg+xml' })
  }),
  [`GET ${PATH}/labels.pdf`]: viewer(
    orOnPage(async (context) => {
      const { deps, user } = context
      const { sheets, choice, links } = await chosenSheets(context)
      const missing = await deps.images.findMissing(captionText(choice), user.account.id)
      if (missing.length > 0) throw refuse(`${labelOf('caption')}: ${missingText(missing)}`)
      const pdf = await deps.images.sheetPdf(sheets, user.account.id)
      await keepSheets(context, choice, links)
      return fileResponse(pdf, { name: 'hopcode-labels.pdf', type: 'application/pdf' })
    }),
  ),
  [`GET ${PATH}/keep`]: viewer(async (context) => {
    const { choice, links } = await chosenSheets(context)
    await keepSheets(context, choice, links)
    return noContent([])
  }),
  [`GET ${PATH}/codes.zip`]: viewer(
    orOnPage(async (context) => {
      const { deps, user, query } = context
      const links = await someLinks(context, IMAGES_MAX)
      const { options, problems } = readChoice(context, false)
      const { file = 'png' } = query
      const format = PRINT_FORMATS.find((name) => name === file)
      if (!format) problems.file = 'Must be png, svg or pdf'
      const missing = await deps.images.findMissing(options.caption, user.account.id)
      if (missing.length > 0) problems.preset = missingText(missing)
      requireNone(problems)
      if (hasRole(user.role, 'editor')) await keepPrinted(context, links)
      return zipOf(context, links, { ...options, format: format ?? 'png' })
    }),
  ),
})

/** A refused file returns to the page in a browser: nothing that was chosen is lost. */
function orOnPage(file: PageFunction): PageFunction {
  return async (context) => {
    try {
      return await file(context)
    } catch (error) {
      const isBrowser = /\btext\/html\b/.test(context.request.headers.get('accept') ?? '')
      if (!isBrowser || !(error instanceof AppError) || error.status === 500) throw error
      return printPage({ ...context, refusal: error })
    }
  }
}

/** Numbered labels have a word: Analytics then shows visits with it as scans. */
async function keepSheets(
  context: PageContext,
  { series }: PrintChoice,
  links: readonly DetailedLink[],
): Promise<void> {
  if (!hasRole(context.user.role, 'editor')) return
  await keepPrinted(context, links)
  if (series?.word) await keepRef(context, { ref: series.word })
}

/** The selected links that still exist, or those of a list with its filter: the newest `max`. */
async function chosenLinks(context: PageContext, max: number): Promise<DetailedLink[]> {
  const { deps, user, query } = context
  if (query.codes) {
    const codes = [...new Set(query.codes.split(','))].slice(0, max)
    const known = codes.filter((code) => resolveLink(deps, code))
    const links = (known.length > 0 ? known : codes).map((code) =>
      requireOwnedLink(deps, user.account, code),
    )
    return withDetails(deps, links)
  }
  const links: DetailedLink[] = []
  const filter = filterOf(context, parseTableQuery(query))
  for await (const some of exportLinks(deps, user.account.id, filter)) {
    links.push(...some)
    if (links.length >= max) break
  }
  return links.slice(0, max)
}

/** The same for a file. Throws 404 without links. */
async function someLinks(context: PageContext, max: number): Promise<DetailedLink[]> {
  const links = await chosenLinks(context, max)
  if (links.length === 0) throw new AppError('page_not_found')
  return links
}

/** Throws `invalid_value` for the first problem. */
function requireNone(problems: PrintChoice['problems']): void {
  const [first] = Object.entries(problems)
  if (first) throw refuse(`${labelOf(first[0])}: ${first[1]}`)
}

async function chosenSheets(context: PageContext) {
  const links = await chosenLinks(context, LABELS_MAX)
  const choice = readChoice(context, links.length === 1)
  requireNone(choice.problems)
  if (links.length === 0) throw new AppError('page_not_found')
  return { choice, links, sheets: sheetsOf(context, choice, links) }
}

async function printPage(context: PageContext): Promise<Response> {
  const links = await chosenLinks(context, LABELS_MAX + 1)
  const choice = readChoice(context, links.length === 1)
  const { deps, user } = context
  const missing = await deps.images.findMissing(captionText(choice), user.account.id)
  // Options that are refused are named at their fields.
  const isNamed = context.refusal && Object.keys(choice.problems).length > 0
  return page(isNamed ? { ...context, refusal: new FormRefusal(choice.problems) } : context, {
    title: 'Print',
    back: { href: '/app/links', label: 'All links' },
    main:
      links.length === 0
        ? parts.emptyState('No links to print', html`<p>No link matches this filter.</p>`)
        : html`
          <div class="print-options">
            <form method="get" action="${PATH}" id="print-options" hx-get="${PATH}"
              hx-trigger="input delay:300ms" hx-sync="this:replace" hx-target="#sheets"
              hx-select="#sheets" hx-swap="outerHTML" hx-select-oob="#print-missing">
              ${filterFields(context.query)}
              ${optionsCard(context, choice, { missing, isOneLink: links.length === 1 })}
            </form>
            ${ZIP_CARD}
          </div>
          ${await sheetsPart(context, choice, links)}`,
  })
}

/** What the links are chosen by, kept with the options. */
const filterFields = ({ codes, q, tag, state, all }: Query): Html[] =>
  parts.hiddenFields({
    sent: 1,
    ...(codes && { codes }),
    ...(q && { q }),
    ...(tag && { tag }),
    ...(state && { state }),
    ...(all && { all }),
  })

interface FormState {
  /** Characters of the text on every label that no font has. */
  missing: readonly string[]
  isOneLink: boolean
}

function optionsCard(context: PageContext, choice: PrintChoice, state: FormState): Html {
  const { problems, numbers } = choice
  const isMoved = numbers.right !== 0 || numbers.down !== 0
  const fields = (...names: NumberName[]) =>
    html`<div class="columns print-pair">${names.map((name) =>
      numberField(context, choice, name),
    )}</div>`
  const checkbox = (name: string, label: string, isChecked: boolean) =>
    parts.checkbox({ name, label, isChecked })
  return parts.card('Labels', [
    sheetField(context, choice),
    html`<div class="print-grid">${fields('columns', 'rows')}${fields('margin', 'gap')}</div>`,
    presetField(context, choice),
    parts.field({
      name: 'caption',
      label: 'Text on every label',
      value: choice.caption,
      error: problems.caption,
      extra: { maxlength: CAPTION_LENGTH_MAX, placeholder: 'Scan for details' },
    }),
    html`<p class="error" id="print-missing" role="status">${
      state.missing.length > 0 ? missingText(state.missing) : ''
    }</p>`,
    html`<div class="print-checks">
      ${checkbox('title', 'Title', choice.hasTitle)}
      ${checkbox('address', 'Address', choice.hasAddress)}
      ${checkbox('hint', `“${PREVIEW_HINT}” below the address`, choice.hasHint)}
      ${checkbox('marks', 'Marks for cutting', choice.hasCropMarks)}
    </div>`,
    state.isOneLink && seriesFields(context, choice, fields),
    fields('copies', 'skip'),
    html`<details ${attributes({ open: isMoved })}>
      <summary>Align with the printer</summary>
      <p class="hint">If all labels are off by the same distance. Tenths of a millimetre.</p>
      ${fields('right', 'down')}
    </details>`,
    parts.button('Show', 'plain', { 'data-without-script': true }),
  ])
}

/** A button that sends the form of options from outside: htmx follows the clicks inside of it. */
const fileButton = (label: string, look: 'primary' | 'plain', file: string, more = {}): Html =>
  parts.button(label, look, { form: 'print-options', formaction: `${PATH}/${file}`, ...more })

const ZIP_CARD = parts.card('Or a ZIP with a file for each code', [
  html`<div class="row">${PRINT_FORMATS.map((value) =>
    fileButton(value.toUpperCase(), 'plain', 'codes.zip', { name: 'file', value }),
  )}</div>`,
  html`<p class="hint">Named by address and title, with a list as CSV. Each code counts as one read
    of your limit.</p>`,
])

function numberField({ query }: PageContext, choice: PrintChoice, name: NumberName): Html {
  const { label, min, max, decimals } = numberRule(name)
  return parts.field({
    name,
    label,
    type: 'number',
    value: query[name] ?? String(choice.numbers[name]),
    error: choice.problems[name],
    extra: { min, max, step: 10 ** -decimals },
  })
}

function sheetField({ deps, user }: PageContext, { format }: PrintChoice): Html[] {
  const own = deps.data.labelFormats.list(user.account.id)
  const field = parts.select({
    name: 'labels',
    label: 'Sheet',
    value: format,
    choices: [
      ...own.map(({ id, name }) => ({ value: `own-${id}`, label: name })),
      ...Object.entries(PAPERS).map(([value, { name }]) => ({ value, label: `${name}, a grid` })),
      ...Object.entries(FORMATS).map(([value, { name }]) => ({ value, label: name })),
    ],
  })
  const link = html`<p class="hint own-sheets">
    <a href="${FORMATS_PATH}">Own sheets of labels</a></p>`
  return [field, html`${parts.offer(user, FORMATS_PATH, link)}`]
}

function presetField({ deps, user }: PageContext, { preset }: PrintChoice): Html {
  const presets = deps.data.qrSettings.listPresets(user.account.id)
  return parts.select({
    name: 'preset',
    label: 'Codes',
    value: preset,
    choices: [
      { value: '', label: 'Without a preset' },
      ...presets.map(({ id, name }) => ({ value: String(id), label: name })),
    ],
  })
}

/** One link on many things. */
const seriesFields = (
  { query }: PageContext,
  { problems }: PrintChoice,
  fields: (...names: NumberName[]) => Html,
): Html => html`
  <fieldset class="print-files">
    <legend>One link on many things</legend>
    <p class="hint">Tables, rooms, shelves: each label has its number, and its scans are counted
      apart.</p>
    ${fields('count', 'first')}
    ${parts.field({
      name: 'word',
      label: 'Count scans as',
      value: query.word ?? 'table',
      error: problems.word,
      hint: 'table becomes table-1, table-2 and so on.',
      extra: { maxlength: 16, spellcheck: 'false' },
    })}
  </fieldset>`

/** For a text that no font of the service can draw. */
const missingText = (missing: readonly string[]): string =>
  `No font of this service has ${missing.join(' ')}. Print it from the browser, which has more ` +
  'fonts; files for download need a text without.'

/** The pages as they are printed; the message of a refused option instead. */
async function sheetsPart(
  context: PageContext,
  choice: PrintChoice,
  links: readonly DetailedLink[],
): Promise<Html> {
  const problems = Object.entries(choice.problems)
  if (problems.length > 0) {
    return html`<div id="sheets" class="sheets">${parts.notice(
      'bad',
      html`<p>These options cannot be printed.</p>
        <ul>${problems.map(problemLine)}</ul>`,
    )}</div>`
  }
  const sheets = sheetsOf(context, choice, links)
  const { query } = context
  const shown = query.all ? sheets : sheets.slice(0, SHOWN_SHEETS)
  const { paper } = choice.grid
  const { width, height } = PAPERS[paper]
  const params = new URLSearchParams()
  for (const [name, text = ''] of Object.entries(query)) params.set(name, text)
  return html`
    <div id="sheets" class="sheets paper-${paper}">
      ${await notes(context, choice, { links, sheets, shown })}
      ${actions(choice, { params, hidden: sheets.length - shown.length })}
      ${shown.map((_, at) => {
        params.set('sheet', String(at + 1))
        return html`<img class="sheet" src="${PATH}/page.svg?${String(params)}" width="${width}"
          height="${height}" alt="Sheet ${at + 1} of ${sheets.length}">`
      })}
    </div>`
}

/** `hidden`: sheets that are not on the page, which a browser would not print. */
function actions(
  { series }: PrintChoice,
  { params, hidden }: { params: URLSearchParams; hidden: number },
): Html {
  const all = new URLSearchParams([...params, ['all', '1']])
  // Printing sends nothing else, from which the words of the labels could be known.
  const keep = series
    ? { 'hx-get': `${PATH}/keep`, 'hx-include': '#print-options', 'hx-swap': 'none' }
    : {}
  return html`<div class="row">
    ${fileButton('Download PDF', 'primary', 'labels.pdf')}
    ${
      hidden > 0
        ? parts.linkButton(`Show ${parts.plural(hidden, 'more sheet')} to print`, `${PATH}?${all}`)
        : html`<button ${attributes({ type: 'button', class: 'button plain', ...keep })} hidden
            data-needs-script data-print>Print</button>`
    }
  </div>`
}

const problemLine = ([name, problem]: [string, string]): Html =>
  html`<li>${labelOf(name)}: ${problem}.</li>`

const LABELS: Readonly<Record<string, string>> = {
  labels: 'Sheet',
  preset: 'Codes',
  caption: 'Text on every label',
  title: 'Title',
  address: 'Address',
  hint: 'Hint',
  marks: 'Marks for cutting',
  word: 'Count scans as',
  file: 'Format',
}

const labelOf = (name: string): string => LABELS[name] ?? numberRule(name as NumberName).label

interface Printed {
  links: readonly DetailedLink[]
  sheets: readonly Sheet[]
  /** Sheets on the page, the first ones. */
  shown: readonly Sheet[]
}

/** What is on the sheets, and what is not. */
async function notes(
  { deps, user }: PageContext,
  { hasAddress, numbers, series }: PrintChoice,
  { links, sheets, shown }: Printed,
): Promise<Html> {
  const labelsOn = (some: readonly Sheet[]) =>
    some.flatMap((sheet) => sheet.labels).filter((label) => label !== undefined)
  const count = labelsOn(sheets).length
  const isCut = links.length * numbers.copies * (series?.count ?? 1) > LABELS_MAX
  const left = await deps.images.findLeftOut(shown, user.account.id)
  const untyped = labelsOn(shown).filter(({ address }) => hasAddress && address === '').length
  const nowhere = untyped + left.withoutRoom.length
  const where = shown.length < sheets.length ? 'On the sheets below, ' : ''
  const note = (texts: number, what: string) =>
    texts > 0 && parts.notice('note', html`<p>${where}${parts.plural(texts, 'text')} ${what}</p>`)
  return html`
    <h2>${parts.plural(count, 'label')} on ${parts.plural(sheets.length, 'sheet')}</h2>
    <p class="hint">Print at 100 %, without the margins or headers of the browser. Scan a label
      before you print many.</p>
    ${
      isCut &&
      parts.notice(
        'note',
        html`<p>At most ${LABELS_MAX} labels at once: these are of the newest links. Choose links in
          the list, or find them by a word or a tag, to print others.</p>`,
      )
    }
    ${note(
      nowhere,
      'left out: the label has no room for the whole text, or nobody can type the address.',
    )}
    ${note(
      left.undrawn.length,
      `with characters that no font of this service has (${left.missing.join(' ')}): the browser ` +
        'prints them, the PDF leaves these texts out.',
    )}`
}
