import {
  CAPTION_LENGTH_MAX,
  findProblems,
  PRINT_FORMATS,
  parsePrintOptions,
  type QrOptions,
  URL_CAPTION,
} from '../../draw/options.ts'
import {
  evenGrid,
  FORMATS,
  type Grid,
  isTooSmall,
  LABEL_SIDE_MIN_MM,
  type Label,
  PAPERS,
  type Paper,
  type Sheet,
} from '../../draw/sheet.ts'
import { findMissing } from '../../draw/typeface.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { type DetailedLink, withDetails } from '../../links/properties.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { exportLinks } from '../../lists/export.ts'
import { contentOf, readable } from '../../qr/content.ts'
import type { PageContext, Query } from '../auth/guard.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { forAddress, plainTitle, zipOf } from '../print-zip.ts'
import { fileResponse, refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { filterOf, parseTableQuery } from '../ui/link-table.ts'

/** The codes of many links: sheets of labels to print, and a ZIP of images. */

const PATH = '/app/print'
const LABELS_MAX = 500
const IMAGES_MAX = 1000

export const printPages = signedInPages({
  [`GET ${PATH}`]: viewer(printPage, {
    offers: [{ label: 'Print labels', words: 'sheet pdf stickers' }],
  }),
  [`GET ${PATH}/page.svg`]: viewer(async (context) => {
    const { deps, user, query } = context
    const sheet = (await sheetsOf(context))[Number(query.sheet ?? '1') - 1]
    if (!sheet) throw new AppError('page_not_found')
    const svg = await deps.images.sheetSvg(sheet, user.account.id)
    return fileResponse(svg, { name: 'labels.svg', type: 'image/svg+xml' })
  }),
  [`GET ${PATH}/labels.pdf`]: viewer(async (context) => {
    const { deps, user } = context
    const pdf = await deps.images.sheetPdf(await sheetsOf(context), user.account.id)
    return fileResponse(pdf, { name: 'hopcode-labels.pdf', type: 'application/pdf' })
  }),
  [`GET ${PATH}/codes.zip`]: viewer(async (context) => {
    const links = await someLinks(context, IMAGES_MAX)
    const { options, problems } = readChoice(context)
    const { file = 'png' } = context.query
    const format = PRINT_FORMATS.find((name) => name === file)
    if (!format) problems.file = 'Must be png, svg or pdf'
    requireNone(problems)
    return zipOf(context, links, { ...options, format: format ?? 'png' })
  }),
})

/** The selected links, or those of a list with its filter: its newest ones, up to `max`. */
async function chosenLinks(context: PageContext, max: number): Promise<DetailedLink[]> {
  const { deps, user, query } = context
  if (query.codes) {
    const codes = [...new Set(query.codes.split(','))].slice(0, max)
    return withDetails(
      deps,
      codes.map((code) => requireOwnedLink(deps, user.account, code)),
    )
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

interface PrintChoice {
  options: QrOptions
  preset: string
  caption: string
  hasTitle: boolean
  hasAddress: boolean
  hasCropMarks: boolean
  format: string
  grid: Grid
  /** The fields of a grid, and labels of the first sheet that are used already. */
  numbers: Record<keyof typeof NUMBERS, number>
  problems: Record<string, string>
}

const NUMBERS = {
  columns: { label: 'Columns', min: 1, max: 10, initial: 3 },
  rows: { label: 'Rows', min: 1, max: 20, initial: 6 },
  margin: { label: 'Margin (mm)', min: 0, max: 50, initial: 10 },
  gap: { label: 'Gap (mm)', min: 0, max: 30, initial: 4 },
  skip: { label: 'Used labels of the first sheet', min: 0, max: 199, initial: 0 },
}

/** In millimetres; the others are counts. */
const isLength = (name: string): boolean => name === 'margin' || name === 'gap'

const isPaper = (text: string): text is Paper => Object.hasOwn(PAPERS, text)

function readChoice({ deps, user, query }: PageContext): PrintChoice {
  const presets = deps.data.qrSettings.listPresets(user.account.id)
  const preset = presets.find(({ id }) => String(id) === query.preset)
  const problems: Record<string, string> = {}
  const { caption: problem } = findProblems({ caption: query.caption })
  if (problem) problems.caption = problem.replace('Invalid caption: m', 'M')
  const numbers = {} as PrintChoice['numbers']
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    const { min, max, initial } = NUMBERS[name]
    const text = query[name] ?? String(initial)
    const isValid = (isLength(name) ? /^\d{0,3}(\.\d{1,2})?$/ : /^\d{1,3}$/).test(text)
    const number = isValid && text !== '' ? Number(text) : Number.NaN
    numbers[name] = number >= min && number <= max ? number : initial
    if (numbers[name] === number) continue
    const decimals = isLength(name) ? 'with at most two decimals' : 'without decimals'
    problems[name] = `Must be a number between ${min} and ${max}, ${decimals}`
  }
  const format = query.labels ?? 'a4'
  const known = Object.hasOwn(FORMATS, format) ? FORMATS[format]?.grid : undefined
  if (!known && !isPaper(format)) problems.labels = 'Must be a sheet of the list'
  if (query.preset && !preset) problems.preset = 'Must be a preset of the account'
  const grid = known ?? evenGrid({ paper: isPaper(format) ? format : 'a4', ...numbers })
  if (isTooSmall(grid)) {
    problems.columns ??=
      `The labels become smaller than ${LABEL_SIDE_MIN_MM} mm, or those at the edges of the ` +
      'paper have no room for a code: choose fewer'
  }
  const isOn = (name: string) => {
    if (!['0', '1', undefined].includes(query[name])) problems[name] = 'Must be 0 or 1'
    return query.sent ? query[name] === '1' : true
  }
  return {
    options: preset?.options ?? parsePrintOptions({}),
    preset: preset ? String(preset.id) : '',
    caption: query.caption ?? '',
    hasTitle: isOn('title'),
    hasAddress: isOn('address'),
    hasCropMarks: isOn('marks'),
    format,
    grid,
    numbers,
    problems,
  }
}

/** Throws `invalid_value` for the first problem. */
function requireNone(problems: PrintChoice['problems']): void {
  const [first] = Object.entries(problems)
  if (first) throw refuse(`${labelOf(first[0])}: ${first[1]}`)
}

async function sheetsOf(context: PageContext): Promise<Sheet[]> {
  const choice = readChoice(context)
  requireNone(choice.problems)
  return pagesOf(context, choice, await someLinks(context, LABELS_MAX))
}

function pagesOf(
  { deps }: PageContext,
  choice: PrintChoice,
  links: readonly DetailedLink[],
): Sheet[] {
  const { options, grid, hasCropMarks, numbers } = choice
  const perSheet = grid.columns * grid.rows
  const skipped = Math.min(numbers.skip, perSheet - 1)
  const caption = choice.caption.normalize('NFC').trim() || presetText(options)
  const labels: (Label | undefined)[] = Array(skipped).fill(undefined)
  for (const link of links) {
    const address = deps.addresses.display(link)
    labels.push({
      text: contentOf(address, forAddress(options, address)),
      title: choice.hasTitle ? plainTitle(link) : '',
      caption,
      address: choice.hasAddress ? readable(address) : '',
    })
  }
  return Array.from({ length: Math.ceil(labels.length / perSheet) }, (_, at) => ({
    grid,
    hasCropMarks,
    options,
    labels: labels.slice(at * perSheet, (at + 1) * perSheet),
  }))
}

/** The short URL has a line of its own. */
const presetText = ({ caption }: QrOptions): string => (caption === URL_CAPTION ? '' : caption)

async function printPage(context: PageContext): Promise<Response> {
  const links = await chosenLinks(context, IMAGES_MAX)
  const choice = readChoice(context)
  const count = parts.plural(links.length, 'link')
  return page(context, {
    title: 'Print',
    back: { href: '/app/links', label: 'All links' },
    main:
      links.length === 0
        ? parts.emptyState('No links to print', html`<p>No link matches this filter.</p>`)
        : html`
          <form method="get" action="${PATH}" class="print-options" hx-get="${PATH}"
            hx-trigger="input delay:300ms" hx-sync="this:replace" hx-target="#sheets"
            hx-select="#sheets" hx-swap="outerHTML">
            ${filterFields(context.query)}
            ${optionsCard(context, choice, count)}
          </form>
          ${await sheets(context, choice, links)}`,
  })
}

/** What the links are chosen by, kept with the options. */
const filterFields = ({ codes, q, tag, state }: Query): Html[] =>
  parts.hiddenFields({
    sent: 1,
    ...(codes && { codes }),
    ...(q && { q }),
    ...(tag && { tag }),
    ...(state && { state }),
  })

function optionsCard({ deps, user, query }: PageContext, choice: PrintChoice, count: string): Html {
  const presets = deps.data.qrSettings.listPresets(user.account.id)
  const number = (name: keyof typeof NUMBERS) => {
    const { label, min, max } = NUMBERS[name]
    const step = isLength(name) ? 0.01 : 1
    return parts.field({
      name,
      label,
      type: 'number',
      value: query[name] ?? String(choice.numbers[name]),
      error: choice.problems[name],
      autocomplete: 'off',
      extra: { min, max, step },
    })
  }
  const checkbox = (name: string, label: string, isChecked: boolean) =>
    parts.checkbox({ name, label, isChecked })
  return parts.card(`Labels for ${count}`, [
    parts.select({
      name: 'labels',
      label: 'Sheet',
      value: choice.format,
      choices: [
        ...Object.entries(PAPERS).map(([value, { name }]) => ({ value, label: `${name}, a grid` })),
        ...Object.entries(FORMATS).map(([value, { name }]) => ({ value, label: name })),
      ],
    }),
    html`<div class="columns print-grid">
      ${number('columns')}${number('rows')}${number('margin')}${number('gap')}
    </div>`,
    parts.select({
      name: 'preset',
      label: 'Codes',
      value: choice.preset,
      choices: [
        { value: '', label: 'Without a preset' },
        ...presets.map(({ id, name }) => ({ value: String(id), label: name })),
      ],
    }),
    parts.field({
      name: 'caption',
      label: 'Text on every label',
      value: choice.caption,
      error: choice.problems.caption,
      autocomplete: 'off',
      extra: { maxlength: CAPTION_LENGTH_MAX, placeholder: 'Scan for details' },
    }),
    html`<div class="print-checks">
      ${checkbox('title', 'Title', choice.hasTitle)}
      ${checkbox('address', 'Address', choice.hasAddress)}
      ${checkbox('marks', 'Marks for cutting', choice.hasCropMarks)}
    </div>`,
    number('skip'),
    html`<div class="row">
      ${parts.button('Show', 'plain', { 'data-without-script': true })}
      <button type="button" class="button" hidden data-needs-script data-print>Print</button>
      ${parts.button('Download PDF', 'plain', { formaction: `${PATH}/labels.pdf` })}
    </div>`,
    html`<fieldset class="print-files">
      <legend>Or one file for each code</legend>
      ${parts.select({
        name: 'file',
        label: 'Format',
        value: 'png',
        choices: PRINT_FORMATS.map((value) => ({ value, label: value.toUpperCase() })),
      })}
      ${parts.button('Download ZIP', 'plain', { formaction: `${PATH}/codes.zip` })}
      <p class="hint">Named by address and title, with a list as CSV. Each code counts as one
        read of your limit.</p>
    </fieldset>`,
  ])
}

/** The pages as they are printed; the message of a refused option instead. */
async function sheets(
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
  const shown = links.slice(0, LABELS_MAX)
  const pages = pagesOf(context, choice, shown)
  const { paper } = choice.grid
  const { width, height } = PAPERS[paper]
  const query = new URLSearchParams()
  for (const [name, text = ''] of Object.entries(context.query)) query.set(name, text)
  return html`
    <div id="sheets" class="sheets paper-${paper}">
      ${notes(links, pages)}${await leftOutNotes(context, choice, pages)}
      ${pages.map((_, at) => {
        query.set('sheet', String(at + 1))
        return html`<img class="sheet" src="${PATH}/page.svg?${String(query)}" width="${width}"
          height="${height}" alt="Sheet ${at + 1} of ${pages.length}">`
      })}
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
  marks: 'Marks for cutting',
  file: 'Format',
}

const labelOf = (name: string): string =>
  LABELS[name] ?? NUMBERS[name as keyof typeof NUMBERS].label

function notes(links: readonly DetailedLink[], pages: readonly Sheet[]): Html {
  return html`
    <p class="hint">${parts.plural(pages.length, 'sheet')}. Print at 100 %, without the margins or
      headers of the browser. Scan a label before you print many.</p>
    ${
      links.length > LABELS_MAX &&
      parts.notice(
        'note',
        html`<p>Only the newest ${LABELS_MAX} of ${links.length}${
          links.length === IMAGES_MAX ? ' or more' : ''
        } links are on the sheets.</p>`,
      )
    }`
}

/** Says how many texts of labels are printed by browsers only, or not at all. */
async function leftOutNotes(
  { deps, user }: PageContext,
  { hasAddress }: PrintChoice,
  pages: readonly Sheet[],
): Promise<Html> {
  const labels = pages.flatMap((sheet) => sheet.labels).filter((label) => label !== undefined)
  const untyped = labels.filter(({ address }) => hasAddress && address === '').length
  const nowhere = untyped + (await deps.images.countWithoutRoom(pages, user.account.id))
  const texts = labels.flatMap(({ title, address }) => [title, address])
  const foreign = texts.filter((text) => findMissing(text) !== undefined).length
  const note = (count: number, what: string) =>
    count > 0 && parts.notice('note', html`<p>${parts.plural(count, 'text')} ${what}</p>`)
  return html`${note(
    nowhere,
    'left out: the label has no room for the whole title or text, or nobody can type the address.',
  )}${note(
    foreign,
    'in letters that our typeface lacks: the browser prints the whole text, the PDF leaves it out.',
  )}`
}
