import { z } from 'zod'
import { REFUSALS } from '../errors.ts'
import { CODE_PATTERN, type Code, toCode } from '../lib/code.ts'
import { PASSCODE_LENGTH } from './link.ts'
import { Url, urlModel } from './url.ts'

/**
 * Chapters "Endpoints" and "Errors": what requests may contain, and the message for each fault.
 */

const missing = (field: string) => `Missing required field: ${field}`

const BAD_CODE = REFUSALS.invalid_code.message()

/** A code to reserve: it must have the form of a code. */
const NewCode = z
  .string(BAD_CODE)
  .regex(CODE_PATTERN, BAD_CODE)
  .transform((text) => toCode(text) as Code)

/** An existing code: a text that cannot be a code is an unknown one. */
const KnownCode = z
  .string(missing('code'))
  .meta({ description: 'An existing code, in any letter case.', example: 'SPRING26' })

const Passcode = z.string(missing('passcode')).meta({
  description: 'What came with the code.',
  example: 'IXCY12FEDLPXNRNRWE33CN9W',
  minLength: PASSCODE_LENGTH,
  maxLength: PASSCODE_LENGTH,
})

export const ShortenBody = z.object({ url: Url }, { error: REFUSALS.invalid_url.message() })

export const ReserveBody = z.object({ code: NewCode }, { error: BAD_CODE })

export const UpdateBody = z.object(
  {
    code: KnownCode,
    passcode: Passcode,
    url: urlModel(missing('url')),
  },
  { error: missing('code') },
)

export const DeleteBody = z.object(
  { code: KnownCode, passcode: Passcode },
  { error: missing('code') },
)

/** Any value: `Url` validates each item separately, and a bad one fails alone. */
const BulkItem = z
  .unknown()
  .meta({ ...z.toJSONSchema(Url, { target: 'openapi-3.0', io: 'input' }) })

/** `itemsMax`: the plan's batch size. */
export const bulkBody = (itemsMax: number) => {
  const message = `urls must contain between 1 and ${itemsMax} items`
  return z.object(
    { urls: z.array(BulkItem, message).min(1, message).max(itemsMax, message) },
    { error: message },
  )
}

const LIST_LIMIT_MAX = 200
/** Characters. Longer texts take longer to compare and are not needed. */
export const SEARCH_MAX = 200
const SEARCH_TOO_LONG = `Invalid search: must have at most ${SEARCH_MAX} characters`

/**
 * A query parameter is text that means a whole number: `meta` overrides the type in the API
 * description.
 */
const wholeNumber = (
  message: string,
  about: { minimum: number; maximum: number; default: number; description: string },
) =>
  z
    .string(message)
    .regex(/^\d{1,15}$/, message)
    .refine((text) => Number(text) >= about.minimum && Number(text) <= about.maximum, message)
    .default(String(about.default))
    .meta({ type: 'integer', ...about })
    .transform(Number)

export const ListQuery = z.object({
  limit: wholeNumber(`Invalid limit: must be an integer between 1 and ${LIST_LIMIT_MAX}`, {
    minimum: 1,
    maximum: LIST_LIMIT_MAX,
    default: 50,
    description: 'How many codes to give.',
  }),
  offset: wholeNumber('Invalid offset: must be an integer of at least 0', {
    minimum: 0,
    maximum: 999_999_999_999_999,
    default: 0,
    description: 'How many codes to skip.',
  }),
  search: z
    .string('Invalid search: must be a text')
    .refine((text) => [...text].length <= SEARCH_MAX, SEARCH_TOO_LONG)
    .optional()
    .meta({
      description: 'A part of the code or the URL, in any letter case.',
      maxLength: SEARCH_MAX,
    }),
})

export const CountField = z.int().min(0)
const CodeField = z
  .string()
  .regex(/^[A-Z0-9]{6,20}$/)
  .meta({ example: 'SPRING26' })
export const AddressField = z.string().meta({ format: 'uri' })
export const TimeField = z
  .string()
  .meta({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' })
const OwnPasscode = z
  .string()
  .regex(/^[A-Z0-9]{24}$/)
  .meta({ description: 'Shown this once, and never again.' })

export const CreatedView = z.object({
  code: CodeField,
  url: z.string(),
  passcode: OwnPasscode,
  short_url: AddressField,
  qr_url: AddressField,
  created_at: TimeField,
  reused: z.literal(false),
})
export type CreatedView = z.infer<typeof CreatedView>

/** The passcode is stored hashed: it cannot be shown again. */
export const ReusedView = CreatedView.extend({ passcode: z.null(), reused: z.literal(true) })
export type ReusedView = z.infer<typeof ReusedView>

export const ReservedView = z.object({
  code: CodeField,
  passcode: OwnPasscode,
  url: z.null(),
  short_url: AddressField,
  reserved: z.literal(true),
  created_at: TimeField,
})
export type ReservedView = z.infer<typeof ReservedView>

export const UpdatedView = z.object({
  code: CodeField,
  url: z.string(),
  short_url: AddressField,
  updated: z.literal(true),
})
export type UpdatedView = z.infer<typeof UpdatedView>

export const DeletedView = z.object({ code: CodeField, deleted: z.literal(true) })
export type DeletedView = z.infer<typeof DeletedView>

export const BulkItemView = z.union([
  CreatedView.extend({ ok: z.literal(true) }),
  ReusedView.extend({ ok: z.literal(true) }),
  z.object({ ok: z.literal(false), url: z.string().nullable(), error: z.string() }),
])
export type BulkItemView = z.infer<typeof BulkItemView>

export const BulkView = z.object({ count: CountField, results: z.array(BulkItemView) })
export type BulkView = z.infer<typeof BulkView>

export const LookupView = z.object({
  code: CodeField,
  url: z.string().nullable(),
  created_at: TimeField,
  hit_count: CountField,
})
export type LookupView = z.infer<typeof LookupView>

export const ListView = z.object({
  total: CountField,
  limit: CountField,
  offset: CountField,
  count: CountField,
  items: z.array(LookupView.extend({ short_url: AddressField, qr_url: AddressField })),
})
export type ListView = z.infer<typeof ListView>
