import { z } from 'zod'
import { REFUSALS } from '../errors.ts'
import type { ParsedUrl } from './location.ts'
import { AddressField, CountField, LookupView, TimeField } from './schema.ts'
import { urlModel } from './url.ts'

/** Optional properties of a link: what they may contain, as JSON and as rows. */

export interface LinkProperties {
  title: string | null
  note: string | null
  /** In alphabetical order. */
  tags: string[]
  /** Visitors get 404; the code stays reserved. */
  isPaused: boolean
  /** Visitors get 404 before this time. */
  startsAt: number | null
  /** From this time on visitors get 410, or `expiredUrl`. */
  expiresAt: number | null
  /** After so many hits visitors get 410, or `expiredUrl`. */
  maxHits: number | null
  expiredUrl: string | null
  /** The query string of a request is added to the destination. */
  forwardQuery: boolean
  /** When the deletion takes effect that can still be undone; visitors get 404 until then. */
  deleteAt: number | null
}

export const NO_PROPERTIES: Readonly<LinkProperties> = {
  title: null,
  note: null,
  tags: [],
  isPaused: false,
  startsAt: null,
  expiresAt: null,
  maxHits: null,
  expiredUrl: null,
  forwardQuery: false,
  deleteAt: null,
}

type Optional<Type> = { [Name in keyof Type]?: Type[Name] | undefined }

/** The properties that a change sets; absent ones stay. */
export interface PropertiesPatch extends Optional<Omit<LinkProperties, 'tags' | 'deleteAt'>> {
  /** Replaces all tags. */
  tags?: readonly string[] | undefined
  addTags?: readonly string[] | undefined
  removeTags?: readonly string[] | undefined
}

/** A change as a request makes it: its URL may still be on the blocklist. */
export interface PropertiesChange extends Omit<PropertiesPatch, 'expiredUrl'> {
  expiredUrl?: ParsedUrl | null | undefined
}

/** Maximum characters of a title. */
export const TITLE_MAX = 200
export const NOTE_MAX = 2000
export const TAG_MAX = 40
/** Maximum number of tags of one link. */
export const TAGS_MAX = 20
export const MAX_HITS_MAX = 1_000_000_000
/** Maximum number of links that one call changes. */
export const CHANGED_MAX = 100

const hasAtMost = (text: string, characters: number) => [...text].length <= characters
const orNull = (text: string) => (text === '' ? null : text)

const BAD_TITLE = `Invalid title: must be one line of at most ${TITLE_MAX} characters`
const BAD_NOTE = 'Invalid note: must be a text of at most 2,000 characters'
const BAD_TAG = `Invalid tags: each must have 1 to ${TAG_MAX} characters and no comma`
export const BAD_TAGS = `Invalid tags: must be a list of at most ${TAGS_MAX}`
export const BAD_TIMES = 'Invalid starts_at: must be before expires_at'
const BAD_MAX_HITS = `Invalid max_hits: must be an integer between 1 and ${MAX_HITS_MAX}`

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

const Title = z
  .string(BAD_TITLE)
  .trim()
  .refine((text) => hasAtMost(text, TITLE_MAX), BAD_TITLE)
  .refine((text) => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text), BAD_TITLE)
  .meta({ description: 'Shown in the dashboard only.', maxLength: TITLE_MAX, example: 'Poster' })
  .transform(orNull)

const Note = z
  .string(BAD_NOTE)
  .trim()
  .refine((text) => hasAtMost(text, NOTE_MAX), BAD_NOTE)
  .refine((text) => text.isWellFormed() && !/[^\P{Cc}\t\r\n]/u.test(text), BAD_NOTE)
  .meta({ description: 'Shown in the dashboard only.', maxLength: NOTE_MAX })
  .transform(orNull)

const TIME_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

const timeModel = (name: string, description: string) => {
  const message = `Invalid ${name}: must be a time such as 2026-03-01T12:00:00.000Z`
  return z
    .string(message)
    .regex(TIME_PATTERN, message)
    .refine((text) => !Number.isNaN(Date.parse(text)), message)
    .meta({ description, format: 'date-time', example: '2026-03-01T12:00:00.000Z' })
    .transform((text) => Date.parse(text))
    .nullish()
}

const flagModel = (name: string, description: string) =>
  z
    .boolean(`Invalid ${name}: must be true or false`)
    .meta({ description })
    .nullish()
    .transform((value) => (value === null ? false : value))

const FIELDS = {
  title: Title.nullish(),
  note: Note.nullish(),
  tags: z
    .array(Tag, BAD_TAGS)
    .max(TAGS_MAX, BAD_TAGS)
    .meta({ description: 'Stored in small letters.' })
    .nullish(),
  paused: flagModel('paused', 'Visitors get 404. The code stays reserved.'),
  starts_at: timeModel('starts_at', 'Visitors get 404 before this time.'),
  expires_at: timeModel('expires_at', 'From this time on visitors get 410, or `expired_url`.'),
  max_hits: z
    .int(BAD_MAX_HITS)
    .min(1, BAD_MAX_HITS)
    .max(MAX_HITS_MAX, BAD_MAX_HITS)
    .meta({ description: 'After so many hits visitors get 410, or `expired_url`.' })
    .nullish(),
  expired_url: urlModel(REFUSALS.invalid_url.message()).nullish(),
  forward_query: flagModel(
    'forward_query',
    'The query of a request is added to the destination, and replaces parameters of the same name.',
  ),
}

const FIELD_NAMES = Object.keys(FIELDS).join(', ')

/** Its output is a `PropertiesChange`. Null clears a property; an absent one stays. */
export const PropertiesBody = z
  .strictObject(FIELDS, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `Unknown field: ${String(issue.keys[0]).slice(0, 100)}. The fields are ${FIELD_NAMES}.`
        : 'Invalid properties: must be a JSON object',
  })
  .transform(
    (body): PropertiesChange => ({
      title: body.title,
      note: body.note,
      tags: body.tags === null ? [] : body.tags,
      isPaused: body.paused,
      startsAt: body.starts_at,
      expiresAt: body.expires_at,
      maxHits: body.max_hits,
      expiredUrl: body.expired_url,
      forwardQuery: body.forward_query,
    }),
  )

const TimeOrNull = TimeField.nullable()

export const PropertiesView = LookupView.extend({
  short_url: AddressField,
  qr_url: AddressField,
  title: z.string().nullable(),
  note: z.string().nullable(),
  tags: z.array(z.string()),
  paused: z.boolean(),
  starts_at: TimeOrNull,
  expires_at: TimeOrNull,
  max_hits: CountField.nullable(),
  expired_url: z.string().nullable(),
  forward_query: z.boolean(),
  /** When a deletion in the dashboard takes effect. */
  delete_at: TimeOrNull,
})
export type PropertiesView = z.infer<typeof PropertiesView>

/** The columns of `link_properties` and the tags as a JSON array, from `PROPERTY_COLUMNS`. */
export interface PropertiesRow extends Omit<LinkProperties, 'tags' | 'isPaused' | 'forwardQuery'> {
  tags: string
  pausedAt: number | null
  /** 0 or 1. */
  forwardQuery: number
}

/** Selects a `PropertiesRow` of `links LEFT JOIN link_properties ON link_id = links.id`. */
export const PROPERTY_COLUMNS = `title, note,
  (SELECT json_group_array(tag ORDER BY tag) FROM link_tags WHERE link_id = links.id) AS tags,
  paused_at AS pausedAt, starts_at AS startsAt, expires_at AS expiresAt, max_hits AS maxHits,
  expired_url AS expiredUrl, coalesce(forward_query, 0) AS forwardQuery, delete_at AS deleteAt`

export const propertiesOf = (row: PropertiesRow): LinkProperties => ({
  title: row.title,
  note: row.note,
  tags: JSON.parse(row.tags) as string[],
  isPaused: row.pausedAt !== null,
  startsAt: row.startsAt,
  expiresAt: row.expiresAt,
  maxHits: row.maxHits,
  expiredUrl: row.expiredUrl,
  forwardQuery: row.forwardQuery === 1,
  deleteAt: row.deleteAt,
})
