import { type Html, html } from '../../lib/html.ts'
import {
  CAPTION_LENGTH_MAX,
  LEVELS,
  MARGIN_MAX_MODULES,
  parseQrOptions,
  type QrOptions,
  QrQuery,
  SIZE_MAX_PX,
  SIZE_MIN_PX,
  URL_CAPTION,
} from '../../qr/options.ts'
import * as parts from './components.ts'

/** The form fields of QR options. */

type Query = Readonly<Record<string, string | undefined>>

const TEXT_MAX = 80

interface QrChoice {
  /** The default in place of each refused value. */
  options: QrOptions
  /** The content of the fields, valid or not. */
  texts: { size: string; margin: string; caption: string }
  errors: { size?: string; margin?: string; caption?: string }
}

/** The value of the select `caption` that stands for the field `captionText`. */
const OWN_CAPTION = 'text'

/** The form's fields as the query of `/api/qr/{code}`. */
export function apiQueryOf({ captionText, ...query }: Query): Query {
  return query.caption === OWN_CAPTION ? { ...query, caption: captionText ?? '' } : query
}

/** A refused number or text is shown with its error. Other fields send no bad value. */
export function parseQrChoice(fields: Query): QrChoice {
  const query = apiQueryOf(fields)
  const errors: Record<string, string> = {}
  const accepted: Record<string, string | undefined> = {}
  for (const name of QrQuery.keyof().options) {
    const problem = QrQuery.shape[name].safeParse(query[name]).error?.issues[0]?.message
    if (!problem) accepted[name] = query[name]
    else errors[name] = problem
  }
  const options = parseQrOptions({ ...accepted, format: 'png' })
  const textOf = (name: keyof QrChoice['texts']) =>
    (query[name] ?? String(options[name])).slice(0, TEXT_MAX)
  const texts = { size: textOf('size'), margin: textOf('margin'), caption: textOf('caption') }
  return { options, texts, errors }
}

const LEVEL_LABELS = { L: 'L, 7 %', M: 'M, 15 %', Q: 'Q, 25 %', H: 'H, 30 %' }

/** `hasLogo`: whether the account has one. */
export function qrFields({ options, texts, errors }: QrChoice, hasLogo: boolean): Html {
  const isOwn = texts.caption !== '' && texts.caption !== URL_CAPTION
  return html`
    ${parts.field({
      name: 'size',
      label: 'Size of the PNG in pixels',
      value: texts.size,
      type: 'number',
      error: errors.size,
      autocomplete: 'off',
      hint: `${SIZE_MIN_PX} to ${SIZE_MAX_PX}. An SVG is sharp at every size.`,
      extra: { min: SIZE_MIN_PX, max: SIZE_MAX_PX, step: 1 },
    })}
    <div class="columns qr-pair">
      ${parts.field({ name: 'dark', label: 'Foreground', type: 'color', value: options.dark })}
      ${parts.field({ name: 'light', label: 'Background', type: 'color', value: options.light })}
    </div>
    <div class="columns qr-pair">
      ${parts.field({
        name: 'margin',
        label: 'Margin (modules)',
        value: texts.margin,
        type: 'number',
        error: errors.margin,
        autocomplete: 'off',
        extra: { min: 0, max: MARGIN_MAX_MODULES, step: 1 },
      })}
      ${parts.select({
        name: 'level',
        label: 'Error correction',
        value: options.level,
        choices: LEVELS.map((value) => ({ value, label: LEVEL_LABELS[value] })),
      })}
    </div>
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
        error: errors.caption,
        autocomplete: 'off',
        extra: { maxlength: CAPTION_LENGTH_MAX },
      })}
    </div>
    ${
      hasLogo &&
      parts.checkbox({
        name: 'logo',
        label: 'Your logo in the middle',
        isChecked: options.logo,
      })
    }`
}

/** The options that differ from the defaults, as text. */
export function describeOptions(options: QrOptions): string {
  const { size, dark, light, margin, level, logo, caption } = options
  const defaults = parseQrOptions({})
  const captionText = caption === URL_CAPTION ? 'short URL' : `“${caption}”`
  return [
    `${size} px`,
    `${dark} on ${light}`,
    ...(margin === defaults.margin ? [] : [`margin ${margin}`]),
    ...(level === defaults.level || logo ? [] : [`level ${level}`]),
    ...(logo ? ['logo'] : []),
    ...(caption === '' ? [] : [captionText]),
  ].join(', ')
}

/** The smallest difference in reflectance that ISO/IEC 15415 grades C, which readers often need. */
const DIFFERENCE_MIN = 0.4

/** Why two colors, both `#rrggbb`, make a code hard to scan; undefined for good ones. */
export function scanWarning({ dark, light }: Pick<QrOptions, 'dark' | 'light'>) {
  const difference = luminance(light) - luminance(dark)
  if (difference >= DIFFERENCE_MIN) return undefined
  return difference < 0
    ? 'The modules are lighter than the background: many cameras cannot read this.'
    : 'The two colors are too similar: cameras may fail to read this.'
}

/** Relative luminance (WCAG 2.2): 0 is black, 1 is white. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
