import { z } from 'zod'
import { REFUSALS } from '../errors.ts'
import { ALIASES_MAX, findPathProblem } from './aliases.ts'
import {
  type Kind,
  MAX_HITS_MAX,
  PROPERTIES,
  type PropertiesChange,
  type PropertyJson,
  type PropertyName,
  SETTABLE_PROPERTIES,
  type SettableName,
  type SettableProperty,
  TAG_MAX,
  TAGS_MAX,
} from './property-table.ts'
import { AddressField, CountField, LookupView, TimeField } from './schema.ts'
import { urlModel } from './url.ts'

/** The JSON of properties in requests and responses, derived from their table. */

const hasAtMost = (text: string, characters: number) => [...text].length <= characters
const orNull = (text: string) => (text === '' ? null : text)

const BAD_TAG = `Invalid tags: each must have 1 to ${TAG_MAX} characters and no comma`
export const BAD_TAGS = `Invalid tags: must be a list of at most ${TAGS_MAX}`
export const BAD_TIMES = 'Invalid starts_at: must be before expires_at'

/** Composition makes one character of at most four units. */
const DECOMPOSED_TAG_MAX = 4 * TAG_MAX

/** A tag in the form in which it is stored: in small letters, without needless spaces. */
export const Tag = z
  .string(BAD_TAG)
  .overwrite((text) => text.trim().replace(/\s+/gu, ' '))
  // The time of `normalize` is quadratic: 5 s for a body of combining marks.
  .max(DECOMPOSED_TAG_MAX, { error: BAD_TAG, abort: true })
  .overwrite((text) => text.normalize('NFC').toLowerCase())
  .refine((text) => text !== '' && hasAtMost(text, TAG_MAX), BAD_TAG)
  .refine((text) => text.isWellFormed() && !/[,\p{Cc}]/u.test(text), BAD_TAG)
  .meta({ maxLength: TAG_MAX, example: 'spring' })

const TIME_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** The value of a property in a request, by its kind. Null clears it. */
const BODIES: { readonly [Name in Kind]: (property: SettableProperty) => z.ZodType } = {
  line: ({ name, description, max = 0 }) => {
    const message = `Invalid ${name}: must be one line of at most ${max} characters`
    return z
      .string(message)
      .trim()
      .refine((text) => hasAtMost(text, max), message)
      .refine((text) => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text), message)
      .meta({ description, maxLength: max, example: 'Poster' })
      .transform(orNull)
      .nullish()
  },
  text: ({ name, description, max = 0 }) => {
    const most = max.toLocaleString('en')
    const message = `Invalid ${name}: must be a text of at most ${most} characters`
    return z
      .string(message)
      .trim()
      .refine((text) => hasAtMost(text, max), message)
      .refine((text) => text.isWellFormed() && !/[^\P{Cc}\t\r\n]/u.test(text), message)
      .meta({ description, maxLength: max })
      .transform(orNull)
      .nullish()
  },
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
  time: ({ name, description }) => {
    const message = `Invalid ${name}: must be a time such as 2026-03-01T12:00:00.000Z`
    return z
      .string(message)
      .regex(TIME_PATTERN, message)
      .refine((text) => !Number.isNaN(Date.parse(text)), message)
      .meta({ description, format: 'date-time', example: '2026-03-01T12:00:00.000Z' })
      .transform((text) => Date.parse(text))
      .nullish()
  },
  count: ({ name, description }) => {
    const message = `Invalid ${name}: must be an integer between 1 and ${MAX_HITS_MAX}`
    return z.int(message).min(1, message).max(MAX_HITS_MAX, message).meta({ description }).nullish()
  },
  url: () => urlModel(REFUSALS.invalid_url.message()).nullish(),
}

type Bodies = { [Name in SettableName]: z.ZodType<PropertiesChange[Name]> }
const bodies = Object.fromEntries(
  SETTABLE_PROPERTIES.map((property) => [property.name, BODIES[property.kind](property)]),
) as Bodies

const strictBody = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'Invalid properties: must be a JSON object'
      const name = String(issue.keys[0]).slice(0, 100)
      return `Unknown field: ${name}. The fields are ${Object.keys(shape).join(', ')}.`
    },
  })

/** Null clears a property; an absent one stays. */
export const PropertiesBody = strictBody(bodies)

const BAD_ALIASES = `Invalid aliases: must be a list of at most ${ALIASES_MAX} paths`

/** A path, decoded and without its first slash. */
export const AliasPath = z.string(BAD_ALIASES).superRefine((path, context) => {
  const problem = findPathProblem(path)
  if (problem) context.addIssue({ code: 'custom', message: `Invalid alias: ${problem}` })
})

/** Properties of a link and all of its aliases. */
export const LinkBody = strictBody({
  ...bodies,
  aliases: z
    .array(AliasPath, BAD_ALIASES)
    .max(ALIASES_MAX, BAD_ALIASES)
    .meta({
      description:
        'All further paths that lead to the link, in exact case, without the first slash. Only ' +
        'owners of the service can add some, unless IMPORT_ALIASES is `all`.',
      example: ['spring-sale'],
    })
    .nullish()
    .transform((paths) => (paths === null ? [] : paths)),
})

const VIEWS: Readonly<Record<Kind, z.ZodType>> = {
  line: z.string().nullable(),
  text: z.string().nullable(),
  url: z.string().nullable(),
  tags: z.array(z.string()),
  flag: z.boolean(),
  time: TimeField.nullable(),
  count: CountField.nullable(),
}

type Views = { [Name in PropertyName]: z.ZodType<PropertyJson[Name]> }

export const PropertiesView = LookupView.extend({
  short_url: AddressField,
  qr_url: AddressField,
  ...(Object.fromEntries(PROPERTIES.map(({ name, kind }) => [name, VIEWS[kind]])) as Views),
  aliases: z.array(z.string()),
})
export type PropertiesView = z.infer<typeof PropertiesView>
