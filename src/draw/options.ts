/** The query of GET /api/qr/{code}: schema, defaults and error messages. */

import { z } from 'zod'
import { AppError } from '../errors.ts'

export const SIZE_MIN_PX = 64
export const SIZE_MAX_PX = 2048
/** Largest side of a file for print: 35 cm at 300 dots per inch. */
export const PRINT_SIZE_MAX_PX = 4096
export const PRINT_FORMATS = ['png', 'svg', 'pdf'] as const

export const MARGIN_MAX_MODULES = 16
export const CAPTION_LENGTH_MAX = 40

/** Width on paper. Larger pictures are enlarged SVG or PDF files. */
export const MM_MIN = 5
export const MM_MAX = 900

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

const SIZE = {
  minimum: SIZE_MIN_PX,
  maximum: SIZE_MAX_PX,
  default: 512,
  description: 'Width and height of the image in pixels. Ignored for svg.',
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

const caption = z
  .string(`Invalid caption: must be 1 or a text of at most ${CAPTION_LENGTH_MAX} characters`)
  .default('')
  .meta({
    maxLength: CAPTION_LENGTH_MAX,
    description: [
      'A text below the code, on one or two lines: 1 for the short URL without its scheme. A PNG',
      'becomes higher by it. The fonts of the service decide which scripts it can have.',
    ].join(' '),
  })
  .transform((text) => text.normalize('NFC').trim())
  .superRefine((text, context) => {
    const message = problemOfCaption(text)
    if (message) context.addIssue({ code: 'custom', message })
  })

function problemOfCaption(text: string): string | undefined {
  if (text.length > CAPTION_LENGTH_MAX) {
    return `Invalid caption: must be 1 or a text of at most ${CAPTION_LENGTH_MAX} characters`
  }
  return CONTROLS.test(text) ? 'Invalid caption: must have no control characters' : undefined
}

/** Also what reverses the direction of other characters. Joiners and marks are parts of words. */
export const CONTROLS = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{NChar}\u202a-\u202e\u2066-\u2069]/u

/** For a caption with characters that no font has. */
export const missingProblem = (missing: readonly string[]): string =>
  `Invalid caption: must have letters of the fonts of the service, which lack ${missing.join(' ')}`

const MM_MESSAGE = `Invalid mm: must be a number of millimetres between ${MM_MIN} and ${MM_MAX}`

const isMillimetres = (text: string): boolean =>
  /^\d{1,3}(?:\.\d)?$/.test(text) && Number(text) >= MM_MIN && Number(text) <= MM_MAX

export const REF_LENGTH_MAX = 20
export const REF_PATTERN = /^[a-z0-9-]{1,20}$/
/** The `ref` of codes that people download, unless they choose another one or none. */
export const DASHBOARD_REF = 'qr'
const REF_MESSAGE = `Invalid ref: must have 1 to ${REF_LENGTH_MAX} small letters, digits or dashes`

/** `1` sets an option that is otherwise absent. */
const flag = (name: string, description: string) =>
  z
    .enum(['0', '1'], `Invalid ${name}: must be 0 or 1`)
    .meta({ description })
    .transform((text) => text === '1' || undefined)
    .optional()

export const QrQuery = z.object({
  format: z
    .enum(['png', 'svg'], 'Invalid format: must be png or svg')
    .default('png')
    .meta({ description: 'Image format.' }),
  size: integer('size', SIZE),
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
  mm: z
    .string(MM_MESSAGE)
    .refine(isMillimetres, MM_MESSAGE)
    .meta({
      type: 'number',
      minimum: MM_MIN,
      maximum: MM_MAX,
      description: 'Width of the image on paper in millimetres, with the margin.',
    })
    .transform(Number)
    .optional(),
  transparent: flag('transparent', '1: no background. The paper must be lighter than `dark`.'),
  capitals: flag(
    'capitals',
    '1: the address in capital letters, which needs fewer modules. Its path must not have others.',
  ),
  ref: z
    .string(REF_MESSAGE)
    .regex(REF_PATTERN, REF_MESSAGE)
    .meta({
      description: [
        'Adds ?ref= to the address in the code, so that scans are a source of their own in the',
        'details of visits.',
      ].join(' '),
    })
    .optional(),
})

/** The options of files for print: more than the endpoint of the contract gives. */
const PrintQuery = QrQuery.extend({
  format: z.enum(PRINT_FORMATS, 'Invalid format: must be png, svg or pdf').default('png'),
  size: integer('size', { ...SIZE, maximum: PRINT_SIZE_MAX_PX }),
})

/** From `parseQrOptions`: colors are `#rrggbb` in lower case, and the level with a logo is H. */
export type QrOptions = z.output<typeof PrintQuery>

type Query = Readonly<Record<string, string | undefined>>

/** Absent parameters have the spec's defaults. Throws `invalid_value` for the first bad one. */
export const parseQrOptions = (query: Query): QrOptions => parseWith(QrQuery, query)

/** As `parseQrOptions`, for files that are printed: PDF, and larger PNG. */
export const parsePrintOptions = (query: Query): QrOptions => parseWith(PrintQuery, query)

/** Options of a preset, which may be older than a rule: its form shows what is wrong. */
export const parseStoredOptions = (query: Query): QrOptions => withLevel(PrintQuery.parse(query))

function parseWith(schema: typeof QrQuery | typeof PrintQuery, query: Query): QrOptions {
  // The spec ignores the size of an svg, so an invalid one is accepted.
  const isVector = query.format === 'svg' || query.format === 'pdf'
  const parsed = schema.safeParse(isVector ? { ...query, size: undefined } : query)
  if (!parsed.success) throw new AppError('invalid_value', parsed.error.issues[0]?.message)
  const [problem] = Object.values(problemsOf(parsed.data))
  if (problem) throw new AppError('invalid_value', problem)
  return withLevel(parsed.data)
}

/** A logo covers modules in the middle: only level H restores them with certainty. */
const withLevel = (options: QrOptions): QrOptions =>
  options.logo ? { ...options, level: 'H' } : options

/** The problem of each parameter, of several that do not fit together too. */
export function findProblems(query: Query): Partial<Record<keyof QrOptions, string>> {
  const problems: Partial<Record<keyof QrOptions, string>> = {}
  const accepted: Record<string, string | undefined> = {}
  for (const name of PrintQuery.keyof().options) {
    const problem = PrintQuery.shape[name].safeParse(query[name]).error?.issues[0]?.message
    if (problem) problems[name] = problem
    else accepted[name] = query[name]
  }
  return { ...problemsOf(PrintQuery.parse(accepted)), ...problems }
}

function problemsOf(options: QrOptions): Partial<Record<keyof QrOptions, string>> {
  const { format, size, mm = 0 } = options
  const dark = problemOfColors(options)
  const mmMax = Math.floor(Math.sqrt(200 * size))
  const isCoarse = format === 'png' && mm > mmMax
  return {
    ...(dark && { dark }),
    // The file has whole pixels per metre: at this width, the print may differ by 0.1 mm.
    ...(isCoarse && { mm: `Invalid mm: must be at most ${mmMax} for a PNG of ${size} pixels` }),
  }
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

/**
 * Difference of the gray values, as readers calculate them, in parts of the range from black to
 * white. Below it, ISO/IEC 15415 grades the contrast of a symbol as failed. `zbar` and `zxing` read
 * flawless images down to half of it.
 */
const CONTRAST_MIN = 0.2

/** Why readers cannot tell the modules from the background; undefined for good colors. */
export function problemOfColors({
  dark,
  light,
  transparent,
}: Pick<QrOptions, 'dark' | 'light' | 'transparent'>): string | undefined {
  // Paper behind a transparent image is as light as white at best.
  const contrast = grayOf(transparent ? '#ffffff' : light) - grayOf(dark)
  return contrast < CONTRAST_MIN ? `Invalid dark: ${TOO_LIGHT}` : undefined
}

/** `modules`: on one side, with the margin. */
export const sizeProblem = (modules: number): string =>
  `Invalid size: must be at least ${modules} for these options`

const TOO_LIGHT = 'must be much darker than the background, or readers cannot read the code'

/** Gray value of `#rrggbb` (ITU-R BT.601): 0 is black, 1 is white. */
function grayOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = rgbOf(color)
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255
}

/** Red, green and blue of `#rrggbb`, 0 to 255. */
export const rgbOf = (color: string) =>
  [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))

/** Throws RangeError unless `color` is written `#rrggbb` in lower case. */
export function checkColor(color: string): void {
  if (!/^#[0-9a-f]{6}$/.test(color)) throw new RangeError(`not a color like #1a2e4f: ${color}`)
}

function sixDigits(color: string): string {
  const digits = color.replace('#', '').toLowerCase()
  return digits.length === 6 ? `#${digits}` : `#${digits.replace(/./g, '$&$&')}`
}
