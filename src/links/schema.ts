import { z } from 'zod'
import { aliasFields, DomainHost } from '../addresses/schema.ts'
import { REFUSALS } from '../errors.ts'
import { CODE_PATTERN } from '../lib/code.ts'
import { DestinationModel, destinationsBody, timeBody } from './destination-schema.ts'
import { PASSCODE_LENGTH } from './link.ts'
import { LinkPassword } from './link-passwords.ts'
import {
  FORWARDINGS,
  type Kind,
  MAX_HITS_MAX,
  PROPERTIES,
  type PropertiesFields,
  type PropertyJson,
  SETTABLE_PROPERTIES,
  type SettableName,
  type SettableProperty,
  TAG_MAX,
  TAGS_MAX,
} from './property-table.ts'
import { badStart, Url, urlModel } from './url.ts'

/**
 * Chapters "Endpoints" and "Errors": what requests may contain, and the message for each fault.
 */

const missing = (field: string) => `Missing required field: ${field}`

/**
 * An object. `message` refuses a value of another type. An unknown field is refused with its name,
 * after the fields themselves.
 */
export const strictBody = <Shape extends z.ZodRawShape>(shape: Shape, message: string) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return message
      const name = String(issue.keys[0]).slice(0, 100)
      return `Unknown field: ${name}. The fields are ${Object.keys(shape).join(', ')}.`
    },
  })

const BAD_CODE = REFUSALS.invalid_code.message()

/** A code to reserve: it must have the form of a code. People see it in these letters. */
const NewCode = z.string(BAD_CODE).regex(CODE_PATTERN, BAD_CODE)

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

export const UpdateBody = strictBody(
  { code: KnownCode, passcode: Passcode, url: urlModel(missing('url')) },
  missing('code'),
).meta({ id: 'UpdateBody' })

export const DeleteBody = strictBody({ code: KnownCode, passcode: Passcode }, missing('code')).meta(
  { id: 'DeleteBody' },
)

/** Any value: `Url` validates each item separately, and a bad one fails alone. */
const BulkItem = z
  .unknown()
  .meta({ ...z.toJSONSchema(Url, { target: 'openapi-3.0', io: 'input' }) })

/** `itemsMax`: the plan's batch size. */
export const bulkBody = (itemsMax: number) => {
  const message = `urls must contain between 1 and ${itemsMax} items`
  const urls = z.array(BulkItem, message).min(1, message).max(itemsMax, message)
  return strictBody({ urls }, message).meta({ id: 'BulkShortenBody' })
}

/**
 * A query parameter is text that means a whole number: `meta` overrides the type in the API
 * description.
 */
export const wholeNumber = (
  message: string,
  {
    maximum = 999_999_999_999_999,
    ...about
  }: { minimum: number; maximum?: number; default: number; description: string },
) =>
  z
    .string(message)
    .regex(/^\d{1,15}$/, message)
    .refine((text) => Number(text) >= about.minimum && Number(text) <= maximum, message)
    .default(String(about.default))
    .meta({ type: 'integer', maximum, ...about })
    .transform(Number)

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
export const ReusedView = CreatedView.extend({
  passcode: z.null().meta({ description: 'Shown once, when the code is created. Null later.' }),
  reused: z.literal(true),
})
export type ReusedView = z.infer<typeof ReusedView>

/** Documented for both statuses: generated clients have one type for all 2xx responses. */
export const ShortenView = z.union([CreatedView, ReusedView]).meta({ id: 'ShortenedLink' })

export const ReservedView = z
  .object({
    code: CodeField,
    passcode: OwnPasscode,
    url: z.null(),
    short_url: AddressField,
    reserved: z.literal(true),
    created_at: TimeField,
  })
  .meta({ id: 'ReservedCode' })
export type ReservedView = z.infer<typeof ReservedView>

export const UpdatedView = z
  .object({
    code: CodeField,
    url: z.string(),
    short_url: AddressField,
    updated: z.literal(true),
  })
  .meta({ id: 'UpdatedLink' })
export type UpdatedView = z.infer<typeof UpdatedView>

export const DeletedView = z
  .object({ code: CodeField, deleted: z.literal(true) })
  .meta({ id: 'DeletedCode' })
export type DeletedView = z.infer<typeof DeletedView>

export const BulkItemView = z
  .union([
    CreatedView.extend({ ok: z.literal(true) }),
    ReusedView.extend({ ok: z.literal(true) }),
    z.object({ ok: z.literal(false), url: z.string().nullable(), error: z.string() }),
  ])
  .meta({ id: 'BulkItem' })
export type BulkItemView = z.infer<typeof BulkItemView>

export const BulkView = z
  .object({ count: CountField, results: z.array(BulkItemView) })
  .meta({ id: 'BulkResult' })
export type BulkView = z.infer<typeof BulkView>

export const LookupView = z
  .object({
    code: CodeField,
    url: z.string().nullable(),
    created_at: TimeField,
    hit_count: CountField,
  })
  .meta({ id: 'Link' })
export type LookupView = z.infer<typeof LookupView>

/** The JSON of properties in requests and responses, derived from their table. */

const hasAtMost = (text: string, characters: number) => [...text].length <= characters

const BAD_TAG = `Invalid tags: each must have 1 to ${TAG_MAX} characters and no comma`
export const BAD_TAGS = `Invalid tags: must be a list of at most ${TAGS_MAX}`
export const BAD_FORWARDING =
  'Invalid forward_path: must be off for a destination with a fragment (#)'
export const BAD_TIMES = 'Invalid starts_at: must be before expires_at'

/** Composition makes one character of at most four units. */
const DECOMPOSED_TAG_MAX = 4 * TAG_MAX

/** What `trim` removes. `\s` has other characters in some languages of clients. */
const SPACE = String.raw`\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`
const NOT_IN_TAG = String.raw`,\u0000-\u0008\u000e-\u001f\u007f-\u009f`
const TAG_PATTERN = `^[^${NOT_IN_TAG}]*[^${NOT_IN_TAG}${SPACE}][^${NOT_IN_TAG}]*$`

/** A tag in the form in which it is stored: in small letters, without needless spaces. */
export const Tag = z
  .string(BAD_TAG)
  .overwrite((text) => text.trim().replace(/\s+/gu, ' '))
  // The time of `normalize` is quadratic: 5 s for a body of combining marks.
  .max(DECOMPOSED_TAG_MAX, { error: BAD_TAG, abort: true })
  .overwrite((text) => text.normalize('NFC').toLowerCase())
  .refine((text) => text !== '' && hasAtMost(text, TAG_MAX), BAD_TAG)
  .refine((text) => text.isWellFormed() && !/[,\p{Cc}]/u.test(text), BAD_TAG)
  .meta({ minLength: 1, maxLength: TAG_MAX, pattern: TAG_PATTERN, example: 'spring' })

/** A text property. `refused`: characters that it cannot contain. */
const textBody = (
  { name, description, max = 0 }: SettableProperty,
  { what, refused, example }: { what: string; refused: RegExp; example?: string },
) => {
  const most = max.toLocaleString('en')
  const message = `Invalid ${name}: must be ${what} of at most ${most} characters`
  return z
    .string(message)
    .trim()
    .refine((text) => hasAtMost(text, max), message)
    .refine((text) => text.isWellFormed() && !refused.test(text), message)
    .meta({ description, maxLength: max, ...(example && { example }) })
    .transform((text) => text || null)
    .nullish()
}

/** The value of a property in a request, by its kind. Null clears it. */
const BODIES: { readonly [Name in Kind]: (property: SettableProperty) => z.ZodType } = {
  line: (property) =>
    textBody(property, {
      what: 'one line',
      refused: /[\p{Cc}\p{Zl}\p{Zp}]/u,
      example: 'Poster',
    }),
  text: (property) => textBody(property, { what: 'a text', refused: /[^\P{Cc}\t\r\n]/u }),
  tags: ({ description }) =>
    z
      .array(Tag, BAD_TAGS)
      .max(TAGS_MAX, BAD_TAGS)
      .meta({ description })
      .nullish()
      .transform((tags) => (tags === null ? [] : tags)),
  flag: ({ name, description }) =>
    z
      .boolean(`Invalid ${name}: must be true or false`)
      .meta({ description })
      .nullish()
      .transform((value) => (value === null ? false : value)),
  forwarding: ({ name, description }) =>
    z
      .enum(FORWARDINGS, `Invalid ${name}: must be ${FORWARDINGS.join(' or ')}`)
      .meta({ description })
      .nullish()
      .transform((value) => (value === 'off' ? null : value)),
  time: ({ name, description }) => timeBody(name).meta({ description }).nullish(),
  count: ({ name, description }) => {
    const message = `Invalid ${name}: must be an integer between 1 and ${MAX_HITS_MAX}`
    return z.int(message).min(1, message).max(MAX_HITS_MAX, message).meta({ description }).nullish()
  },
  url: ({ name }) => urlModel(badStart(name), name).nullish(),
  destinations: ({ description }) => destinationsBody(description),
  domain: ({ description }) => DomainHost.meta({ description, example: 'go.example' }).nullish(),
}

type Bodies = { [Name in SettableName]: z.ZodType<PropertiesFields[Name]> }
const bodies = Object.fromEntries(
  SETTABLE_PROPERTIES.map((property) => [property.name, BODIES[property.kind](property)]),
) as Bodies

const NO_OBJECT = 'Invalid properties: must be a JSON object'

/** Null clears a property; an absent one stays. */
export const PropertiesBody = strictBody(bodies, NO_OBJECT)

/** What requests set of a link beside its code, URL and passcode. */
const settable = {
  ...bodies,
  password: LinkPassword.nullish(),
  ...aliasFields,
}

export const ShortenBody = strictBody(
  { url: Url, code: NewCode.nullish(), ...settable },
  REFUSALS.invalid_url.message(),
).meta({ id: 'ShortenBody' })

export const ReserveBody = strictBody({ code: NewCode, ...settable }, BAD_CODE).meta({
  id: 'ReserveBody',
})

/** Properties of a link and all of its aliases. */
export const LinkBody = strictBody(settable, NO_OBJECT)
export type LinkFields = z.output<typeof LinkBody>

/** The same, with the destination. */
export const ManagedLinkBody = strictBody({ url: Url.optional(), ...settable }, NO_OBJECT).meta({
  id: 'LinkChange',
})

const VIEWS: Readonly<Record<Kind, z.ZodType>> = {
  line: z.string().nullable(),
  text: z.string().nullable(),
  url: z.string().nullable(),
  tags: z.array(z.string()),
  flag: z.boolean(),
  forwarding: z.enum(FORWARDINGS),
  time: TimeField.nullable(),
  count: CountField.nullable(),
  destinations: z.array(DestinationModel),
  domain: z.string().nullable(),
}

const ProtectedField = z.boolean().meta({ description: 'Visitors must enter a password.' })

type Views = { [Name in keyof PropertyJson]: z.ZodType<PropertyJson[Name]> }

export const PropertiesView = LookupView.extend({
  short_url: AddressField,
  qr_url: AddressField,
  ...(Object.fromEntries(
    PROPERTIES.map(({ name, kind }) =>
      kind === 'hash' ? ['protected', ProtectedField] : [name, VIEWS[kind]],
    ),
  ) as Views),
  display_url: AddressField.meta({
    description: 'The address that people see: with the displayed alias, else with the code.',
  }),
  aliases: z.array(z.string()),
  domain_aliases: z.record(z.string(), z.array(z.string())),
  display_alias: z.string().nullable().meta({
    description: 'Null: the newest alias on the domain of the link is shown, if it has one.',
  }),
}).meta({ id: 'OwnLink' })
export type PropertiesView = z.infer<typeof PropertiesView>
