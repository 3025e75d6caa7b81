/** The query of GET /api/qr/{code}: schema, defaults and error messages. */

import { z } from 'zod'
import { AppError } from '../errors.ts'

export const SIZE_MIN_PX = 64
export const SIZE_MAX_PX = 2048

const FORMATS = ['png', 'svg'] as const

export interface QrOptions {
  format: (typeof FORMATS)[number]
  /** Width and height of the PNG in pixels. The SVG has no size of its own. */
  size: number
  /** `#rrggbb`, lower case. */
  dark: string
  /** `#rrggbb`, lower case. */
  light: string
}

const SIZE_MESSAGE = `Invalid size: must be an integer between ${SIZE_MIN_PX} and ${SIZE_MAX_PX}`

// Each default precedes its transform: z.toJSONSchema omits a default that follows one.
const pixelSize = (defaultPx: number) =>
  z
    .string(SIZE_MESSAGE)
    .refine(isPixelSize, SIZE_MESSAGE)
    .default(`${defaultPx}`)
    // Query values are text, but the API documents an integer: these fields override the string.
    .meta({
      type: 'integer',
      minimum: SIZE_MIN_PX,
      maximum: SIZE_MAX_PX,
      default: defaultPx,
      description: 'Width and height of the image in pixels. Ignored for svg.',
    })
    .transform(Number)

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

export const QrQuery = z.object({
  format: z
    .enum(FORMATS, 'Invalid format: must be png or svg')
    .default('png')
    .meta({ description: 'Image format.' }),
  size: pixelSize(512),
  dark: hexColor('dark', 'Foreground', '#1a2e4f'),
  light: hexColor('light', 'Background', '#ffffff'),
})

/** Absent parameters have the spec's defaults. Throws `invalid_value` for the first bad one. */
export function parseQrOptions(query: Readonly<Record<string, string | undefined>>): QrOptions {
  // The spec ignores the size of an svg, so a bad one is no reason to refuse.
  const checked = query.format === 'svg' ? { ...query, size: undefined } : query
  const parsed = QrQuery.safeParse(checked)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_value', parsed.error.issues[0]?.message)
}

/** Throws RangeError unless `color` is written `#rrggbb` in lower case. */
export function checkColor(color: string): void {
  if (!/^#[0-9a-f]{6}$/.test(color)) throw new RangeError(`not a color like #1a2e4f: ${color}`)
}

function isPixelSize(text: string): boolean {
  return /^[1-9]\d{0,3}$/.test(text) && Number(text) >= SIZE_MIN_PX && Number(text) <= SIZE_MAX_PX
}

function sixDigits(color: string): string {
  const digits = color.replace('#', '').toLowerCase()
  return digits.length === 6 ? `#${digits}` : `#${digits.replace(/./g, '$&$&')}`
}
