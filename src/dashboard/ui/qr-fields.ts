import {
  CAPTION_LENGTH_MAX,
  DASHBOARD_REF,
  findProblems,
  LEVELS,
  MARGIN_MAX_MODULES,
  MM_MAX,
  MM_MIN,
  PRINT_SIZE_MAX_PX,
  parsePrintOptions,
  parseQrOptions,
  type QrOptions,
  qrQueryOf,
  REF_LENGTH_MAX,
  rgbOf,
  SIZE_MIN_PX,
  URL_CAPTION,
} from '../../draw/options.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import * as parts from './components.ts'

/** The form fields of QR options. */

type Query = Readonly<Record<string, string | undefined>>

const TEXT_MAX = 80

const TEXTS = ['size', 'margin', 'caption', 'mm', 'ref', 'dark', 'light'] as const

export interface QrChoice {
  /** The default in place of each refused value. */
  options: QrOptions
  /** The content of the fields, valid or not. */
  texts: Record<(typeof TEXTS)[number], string>
  /** By option. */
  errors: Partial<Record<keyof QrOptions, string>>
}

/** The value of the select `caption` that stands for the field `captionText`. */
const OWN_CAPTION = 'text'

/**
 * The form's fields as the query of `/api/qr/{code}`. An empty optional value is absent. `ref` has
 * a default if its field is.
 */
export function apiQueryOf({ captionText, ...query }: Query): Query {
  const {
    mm,
    ref = DASHBOARD_REF,
    ...others
  } = query.caption === OWN_CAPTION ? { ...query, caption: captionText ?? '' } : query
  return { ...others, ...(mm && { mm }), ...(ref && { ref }) }
}

/** The query of a page or file of the dashboard. */
export function formQueryOf(options: QrOptions): URLSearchParams {
  const query = qrQueryOf(options)
  if (options.ref === undefined) query.set('ref', '')
  return query
}

/** Every refused value is shown with its error. */
export function parseQrChoice(fields: Query): QrChoice {
  const query = apiQueryOf(fields)
  const errors = findProblems(query)
  // The problem of a color is that of both.
  const isKept = (name: string) => !(name in errors) && !(name === 'light' && errors.dark)
  const accepted = Object.entries(query).filter(([name]) => isKept(name))
  const options = parsePrintOptions({ ...Object.fromEntries(accepted), format: 'png' })
  const textOf = (name: keyof QrChoice['texts']) =>
    (query[name] ?? (name === 'ref' ? '' : String(options[name] ?? ''))).slice(0, TEXT_MAX)
  return {
    options,
    texts: Object.fromEntries(TEXTS.map((name) => [name, textOf(name)])) as QrChoice['texts'],
    errors,
  }
}

const LEVEL_LABELS = { L: 'L, 7 %', M: 'M, 15 %', Q: 'Q, 25 %', H: 'H, 30 %' }

/**
 * `hasLogo`: whether the account has one. `canBeCapital`: whether the address allows it. Each error
 * has a place of its own, which a script replaces while something is typed.
 */
export function qrFields(
  { options, texts, errors }: QrChoice,
  { hasLogo, hasCapitals }: { hasLogo: boolean; hasCapitals: boolean },
): Html {
  const isOwn = texts.caption !== '' && texts.caption !== URL_CAPTION
  const color = (name: keyof typeof SWATCHES, label: string) => html`
    ${parts.field({ name, label, type: 'color', value: texts[name], extra: { list: `${name}s` } })}
    <datalist id="${name}s">${SWATCHES[name].map((one) => html`<option>${one}</option>`)}
    </datalist>`
  return html`
    <div class="columns qr-pair">
      ${color('dark', 'Foreground')}
      ${color('light', 'Background')}
    </div>
    ${errorPlace('dark', errors)}
    ${parts.checkbox({
      name: 'transparent',
      label: 'Transparent, for light paper',
      isChecked: options.transparent === true,
    })}
    ${
      hasLogo &&
      html`<p class="check"><label>
        <input type="checkbox" ${attributes({ name: 'logo', value: '1', checked: options.logo })}>
        <img src="/app/qr/logo.png" alt="" height="32"> Your logo in the middle</label></p>`
    }
    ${parts.select({
      name: 'caption',
      label: 'Text below the code',
      value: isOwn ? OWN_CAPTION : texts.caption,
      choices: [
        { value: '', label: 'None' },
        { value: URL_CAPTION, label: 'Short URL' },
        { value: OWN_CAPTION, label: 'Your own text' },
      ],
    })}
    <div class="qr-own-text">
      ${parts.field({
        name: 'captionText',
        label: 'Your own text',
        value: isOwn ? texts.caption : '',
        extra: { maxlength: CAPTION_LENGTH_MAX, ...invalid(errors.caption) },
      })}
    </div>
    ${errorPlace('caption', errors)}
    ${parts.field({
      name: 'ref',
      label: 'Count scans apart as',
      value: texts.ref,
      hint: `Added to the address in the code as ?ref=, so that Analytics tells scans from clicks.
        Use a word such as poster for each place, or none.`,
      extra: { maxlength: REF_LENGTH_MAX, spellcheck: 'false', ...invalid(errors.ref) },
    })}
    ${errorPlace('ref', errors)}
    <div class="columns qr-pair">
      ${parts.field({
        name: 'mm',
        label: 'Width on paper (mm)',
        value: texts.mm,
        type: 'number',
        extra: { min: MM_MIN, max: MM_MAX, step: 0.1, placeholder: '40', ...invalid(errors.mm) },
      })}
      ${parts.field({
        name: 'size',
        label: 'Width of the PNG (px)',
        value: texts.size,
        type: 'number',
        extra: { min: SIZE_MIN_PX, max: PRINT_SIZE_MAX_PX, step: 1, ...invalid(errors.size) },
      })}
      ${parts.field({
        name: 'margin',
        label: 'Margin (modules)',
        value: texts.margin,
        type: 'number',
        extra: { min: 0, max: MARGIN_MAX_MODULES, step: 1, ...invalid(errors.margin) },
      })}
      ${parts.select({
        name: 'level',
        label: 'Error correction',
        value: options.level,
        choices: LEVELS.map((value) => ({ value, label: LEVEL_LABELS[value] })),
      })}
    </div>
    ${errorPlace('mm', errors)}${errorPlace('size', errors)}${errorPlace('margin', errors)}
    ${
      hasCapitals &&
      parts.checkbox({
        name: 'capitals',
        label: 'Address in capitals: fewer, larger modules',
        isChecked: options.capitals === true,
      })
    }`
}

/** Browsers offer them beside all other colors. */
const SWATCHES = {
  dark: ['#1a2e4f', '#000000', '#4f46e5', '#0f6b4f', '#b4232c'],
  light: ['#ffffff', '#fff6e5', '#e8f1fd'],
}

/** The message of an option, below its field. Empty while there is none. */
const errorPlace = (name: keyof QrOptions, errors: QrChoice['errors']): Html =>
  html`<p class="error" id="qr-error-${name}" role="status">${errors[name]?.replace(
    /^Invalid \w+: m/,
    'M',
  )}</p>`

const invalid = (error: string | undefined) => (error ? { 'aria-invalid': 'true' } : {})

/** Elements that a changed option replaces, beside the preview. */
export const QR_ERROR_PLACES = (['mm', 'size', 'dark', 'margin', 'caption', 'ref'] as const).map(
  (name) => `#qr-error-${name}`,
)

/** The options that differ from the defaults, as text. */
export function describeOptions(options: QrOptions): string {
  const { size, dark, light, margin, level, logo, caption, mm, ref } = options
  const defaults = parseQrOptions({})
  const captionText = caption === URL_CAPTION ? 'short URL' : `“${caption}”`
  return [
    `${size} px`,
    ...(mm === undefined ? [] : [`${mm} mm`]),
    options.transparent ? `${dark} without background` : `${dark} on ${light}`,
    ...(margin === defaults.margin ? [] : [`margin ${margin}`]),
    ...(level === defaults.level || logo ? [] : [`level ${level}`]),
    ...(logo ? ['logo'] : []),
    ...(caption === '' ? [] : [captionText]),
    ...(options.capitals ? ['capitals'] : []),
    ...(ref === undefined ? [] : [`counted as ${ref}`]),
  ].join(', ')
}

/** The smallest difference in reflectance that ISO/IEC 15415 grades C, which readers often need. */
const DIFFERENCE_MIN = 0.4

/** Why two colors, both `#rrggbb`, make a code hard to scan; undefined for good ones. */
export function scanWarning({
  dark,
  light,
  transparent,
}: Pick<QrOptions, 'dark' | 'light' | 'transparent'>) {
  const difference = luminance(transparent ? '#ffffff' : light) - luminance(dark)
  if (difference >= DIFFERENCE_MIN) return undefined
  return 'The two colors are similar: some cameras may fail to read this.'
}

/** Relative luminance (WCAG 2.2): 0 is black, 1 is white. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = rgbOf(color).map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
