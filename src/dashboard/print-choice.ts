import {
  DASHBOARD_REF,
  findProblems,
  parsePrintOptions,
  type QrOptions,
  REF_PATTERN,
  URL_CAPTION,
} from '../draw/options.ts'
import {
  evenGrid,
  FORMATS,
  type Grid,
  isTooSmall,
  LABEL_SIDE_MIN_MM,
  type Label,
  moved,
  PAPERS,
  type Paper,
  type Sheet,
} from '../draw/sheet.ts'
import type { DetailedLink } from '../links/properties.ts'
import { contentOf, readable } from '../qr/content.ts'
import type { PageContext } from './auth/guard.ts'
import { forAddress, plainTitle } from './print-zip.ts'

/** What the form of the page Print chooses, and the labels of it. */

export const LABELS_MAX = 500

export interface NumberRule {
  label: string
  min: number
  max: number
  decimals: number
}

const NUMBERS = {
  columns: { label: 'Columns', min: 1, max: 10, decimals: 0, initial: 3 },
  rows: { label: 'Rows', min: 1, max: 20, decimals: 0, initial: 6 },
  margin: { label: 'Margin (mm)', min: 0, max: 50, decimals: 2, initial: 10 },
  gap: { label: 'Gap (mm)', min: 0, max: 30, decimals: 2, initial: 4 },
  skip: { label: 'Used labels', min: 0, max: 199, decimals: 0, initial: 0 },
  copies: { label: 'Copies of each', min: 1, max: 100, decimals: 0, initial: 1 },
  right: { label: 'Move right (mm)', min: -10, max: 10, decimals: 1, initial: 0 },
  down: { label: 'Move down (mm)', min: -10, max: 10, decimals: 1, initial: 0 },
  count: { label: 'Numbered labels', min: 0, max: 100, decimals: 0, initial: 0 },
  first: { label: 'First number', min: 1, max: 900, decimals: 0, initial: 1 },
}

export type NumberName = keyof typeof NUMBERS

export const numberRule = (name: NumberName): NumberRule => NUMBERS[name]

const PRECISIONS = ['without decimals', 'with at most one decimal', 'with at most two decimals']

/** The number of a field, or its problem. */
export function parseNumber(text: string, { min, max, decimals }: NumberRule): number | string {
  const isPlain = /^-?\d{0,3}(\.\d+)?$/.test(text) && /\d/.test(text)
  const places = text.split('.')[1]?.length ?? 0
  const value = Number(text)
  if (isPlain && places <= decimals && value >= min && value <= max) return value
  return `Must be a number between ${min} and ${max}, ${PRECISIONS[decimals]}`
}

/** Labels of one link, each with its own number and `ref`. */
interface Series {
  /** What scans are counted as: `table` for `table-1`, `table-2`. Empty: not at all. */
  word: string
  count: number
  first: number
}

export interface PrintChoice {
  options: QrOptions
  preset: string
  caption: string
  hasTitle: boolean
  hasAddress: boolean
  hasHint: boolean
  hasCropMarks: boolean
  format: string
  grid: Grid
  numbers: Record<NumberName, number>
  series: Series | undefined
  problems: Record<string, string>
}

const isPaper = (text: string): text is Paper => Object.hasOwn(PAPERS, text)

/** `isOneLink`: its labels can be numbered. */
export function readChoice({ deps, user, query }: PageContext, isOneLink: boolean): PrintChoice {
  const presets = deps.data.qrSettings.listPresets(user.account.id)
  const preset = presets.find(({ id }) => String(id) === query.preset)
  const problems: Record<string, string> = {}
  const { caption: problem } = findProblems({ caption: query.caption })
  if (problem) problems.caption = problem.replace('Invalid caption: m', 'M')
  const numbers = {} as PrintChoice['numbers']
  for (const name of Object.keys(NUMBERS) as NumberName[]) {
    const { initial } = NUMBERS[name]
    const parsed = parseNumber(query[name] ?? String(initial), NUMBERS[name])
    numbers[name] = typeof parsed === 'number' ? parsed : initial
    if (typeof parsed === 'string') problems[name] = parsed
  }
  const format = query.labels ?? 'a4'
  const own = deps.data.labelFormats.list(user.account.id)
  const known = own.find(({ id }) => format === `own-${id}`) ?? findFormat(format)
  if (!known && !isPaper(format)) problems.labels = 'Must be a sheet of the list'
  if (query.preset && !preset) problems.preset = 'Must be a preset of the account'
  const even = evenGrid({ paper: isPaper(format) ? format : 'a4', ...numbers })
  const grid = moved(known?.grid ?? even, { x: numbers.right, y: numbers.down })
  if (isTooSmall(grid)) problems[known ? 'labels' : 'columns'] ??= TOO_SMALL
  const isOn = (name: string, usually = true) => {
    if (!['0', '1', undefined].includes(query[name])) problems[name] = 'Must be 0 or 1'
    return query.sent ? query[name] === '1' : usually
  }
  const word = query.word ?? 'table'
  const { count, first } = numbers
  const series = isOneLink && count > 0 ? { word, count, first } : undefined
  if (series && word !== '' && !REF_PATTERN.test(refOf(series, first + count - 1))) {
    problems.word = 'Must have small letters, digits or dashes: at most 20 with the number'
  }
  return {
    options: preset?.options ?? parsePrintOptions({ ref: DASHBOARD_REF }),
    preset: preset ? String(preset.id) : '',
    caption: query.caption ?? '',
    hasTitle: isOn('title'),
    hasAddress: isOn('address'),
    hasHint: isOn('hint', false),
    hasCropMarks: isOn('marks'),
    format,
    grid,
    numbers,
    series,
    problems,
  }
}

const findFormat = (name: string) => (Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined)

const TOO_SMALL =
  `The labels become smaller than ${LABEL_SIDE_MIN_MM} mm, or those at the edges of the paper ` +
  'have no room for a code: choose fewer'

const refOf = ({ word }: Series, n: number): string => `${word}-${n}`

/** The labels of the links, on sheets. At most `LABELS_MAX` labels, and `used` ones before them. */
export function sheetsOf(
  { deps }: Pick<PageContext, 'deps'>,
  choice: PrintChoice,
  links: readonly DetailedLink[],
): Sheet[] {
  const { options, grid, hasCropMarks, numbers } = choice
  const perSheet = grid.columns * grid.rows
  const labels = links
    .flatMap((link) => labelsOf(deps.addresses.display(link), plainTitle(link), choice))
    .flatMap((label) => Array<Label>(numbers.copies).fill(label))
    .slice(0, LABELS_MAX)
  const used = Array<undefined>(Math.min(numbers.skip, perSheet - 1)).fill(undefined)
  const places = [...used, ...labels]
  return Array.from({ length: Math.ceil(places.length / perSheet) }, (_, at) => ({
    grid,
    hasCropMarks,
    options,
    labels: places.slice(at * perSheet, (at + 1) * perSheet),
  }))
}

/** One label, or those of a series. */
function labelsOf(address: string, title: string, choice: PrintChoice): Label[] {
  const { series, hasTitle, hasAddress, hasHint } = choice
  const options = forAddress(choice.options, address)
  const caption = captionText(choice)
  const common = {
    title: hasTitle ? title : '',
    address: hasAddress ? readable(address) : '',
    hint: hasAddress && hasHint ? PREVIEW_HINT : '',
  }
  if (!series) return [{ ...common, caption, text: contentOf(address, options) }]
  const { word, count, first } = series
  const name = caption || word.charAt(0).toUpperCase() + word.slice(1)
  return Array.from({ length: count }, (_, at) => {
    const ref = word === '' ? options.ref : refOf(series, first + at)
    const text = contentOf(address, { ...options, ref })
    return { ...common, caption: `${name} ${first + at}`.trim(), text }
  })
}

/** Below an address: its preview is at the same address with this sign. */
export const PREVIEW_HINT = 'Add + to see where it leads'

/** The text of all labels. The short URL of a preset has a line of its own. */
export function captionText({ caption, options }: Pick<PrintChoice, 'caption' | 'options'>) {
  const ofPreset = options.caption === URL_CAPTION ? '' : options.caption
  return caption.normalize('NFC').trim() || ofPreset
}
