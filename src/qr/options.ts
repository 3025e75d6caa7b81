/** The query of GET /api/qr/{code}: schema, defaults and error messages. */

import { z } from 'zod'
import { AppError } from '../errors.ts'

export const SIZE_MIN_PX = 64
export const SIZE_MAX_PX = 2048

export const MARGIN_MAX_MODULES = 16
export const CAPTION_LENGTH_MAX = 40

/** Error correction: the share of the code that may be damaged is 7, 15, 25 or 30 %. */
export const LEVELS = ['L', 'M', 'Q', 'H'] as const
/** The caption that stands for the short URL. */
export const URL_CAPTION = '1'

// Each default precedes its transform: z.toJSONSchema omits a default that follows one.
const integer = (
  name: 'size' | 'margin',
  about: { minimum: number; maximum: number; default: number; description: string },
) => {
  const { minimum, maximum } = about
  const message = `Invalid ${name}: must be an integer between ${minimum} and ${maximum}`
  const isValid = (text: string) =>
    /^(?:0|[1-9]\d{0,3})$/.test(text) && Number(text) >= minimum && Number(text) <= maximum
  return (
    z
      .string(message)
      .refine(isValid, message)
      .default(String(about.default))
      // Query values are text, but the API documents an integer: these fields override the string.
      .meta({ type: 'integer', ...about })
      .transform(Number)
  )
}

const hexColor = (name: 'dark' | 'light', role: string, defaultColor: string) => {
  const message = `Invalid ${name}: must be a hex color like #1a2e4f`
  return z
    .string(message)
    .regex(/^#?(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$/, message)
    .default(defaultColor)
    .meta({
      description: `${role} color: 3 or 6 hex digits, with or without # (in a URL, %23).`,
    })
    .transform(sixDigits)
}

const CAPTION_CONTENT = `at most ${CAPTION_LENGTH_MAX} printable ASCII characters`
const CAPTION_MESSAGE = `Invalid caption: must be 1 or ${CAPTION_CONTENT}`

const caption = z
  .string(CAPTION_MESSAGE)
  .regex(new RegExp(`^[ -~]{0,${CAPTION_LENGTH_MAX}}$`), CAPTION_MESSAGE)
  .default('')
  .meta({
    description:
      'A text below the code: 1 for the short URL without its scheme. A PNG becomes higher by it.',
  })
  .transform((text) => text.trim())

export const QrQuery = z.object({
  format: z
    .enum(['png', 'svg'], 'Invalid format: must be png or svg')
    .default('png')
    .meta({ description: 'Image format.' }),
  size: integer('size', {
    minimum: SIZE_MIN_PX,
    maximum: SIZE_MAX_PX,
    default: 512,
    description: 'Width and height of the image in pixels. Ignored for svg.',
  }),
  dark: hexColor('dark', 'Foreground', '#1a2e4f'),
  light: hexColor('light', 'Background', '#ffffff'),
  margin: integer('margin', {
    minimum: 0,
    maximum: MARGIN_MAX_MODULES,
    default: 4,
    description: 'Light margin on each side, in modules. The standard asks for 4.',
  }),
  level: z
    .enum(LEVELS, 'Invalid level: must be L, M, Q or H')
    .default('M')
    .meta({ description: 'Error correction: 7, 15, 25 or 30 % of the code may be damaged.' }),
  logo: z
    .enum(['0', '1'], 'Invalid logo: must be 0 or 1')
    .default('0')
    .meta({ description: "1: the logo of the code's account in the middle. The level is then H." })
    .transform((text) => text === '1'),
  caption,
})

/** From `parseQrOptions`: colors are `#rrggbb` in lower case, and the level with a logo is H. */
export type QrOptions = z.output<typeof QrQuery>

/** Absent parameters have the spec's defaults. Throws `invalid_value` for the first bad one. */
export function parseQrOptions(query: Readonly<Record<string, string | undefined>>): QrOptions {
  // The spec ignores the size of an svg, so an invalid one is accepted.
  const checked = query.format === 'svg' ? { ...query, size: undefined } : query
  const parsed = QrQuery.safeParse(checked)
  if (!parsed.success) throw new AppError('invalid_value', parsed.error.issues[0]?.message)
  const options = parsed.data
  // A logo covers modules in the middle: only level H restores them with certainty.
  return options.logo ? { ...options, level: 'H' } : options
}

/** The query of `/api/qr/{code}` for these options, without defaults. */
export function qrQueryOf(options: Partial<QrOptions>): URLSearchParams {
  const defaults = parseQrOptions({})
  const query = new URLSearchParams()
  for (const name of QrQuery.keyof().options) {
    const value = options[name]
    if (value === undefined || value === defaults[name]) continue
    if (name === 'level' && options.logo) continue
    query.set(name, value === true ? '1' : String(value))
  }
  return query
}

/** Throws RangeError unless `color` is written `#rrggbb` in lower case. */
export function checkColor(color: string): void {
  if (!/^#[0-9a-f]{6}$/.test(color)) throw new RangeError(`not a color like #1a2e4f: ${color}`)
}

function sixDigits(color: string): string {
  const digits = color.replace('#', '').toLowerCase()
  return digits.length === 6 ? `#${digits}` : `#${digits.replace(/./g, '$&$&')}`
}
