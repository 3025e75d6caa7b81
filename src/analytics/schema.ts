import { z } from 'zod'
import { DAYS_KEPT } from '../hits/series.ts'
import { CODE_PATTERN } from '../lib/code.ts'
import { wholeNumber } from '../links/schema.ts'
import { VISIT_KINDS } from '../visits/values.ts'

/** The API's hits over time: what requests may contain, and responses. */

/** Days of one response: 744 hours, or 400 days. */
export const SPAN_DAYS_MAX = { hour: 31, day: DAYS_KEPT.day } as const

const DATE = String.raw`\d{4}-\d\d-\d\d`
const TIME = String.raw`T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)`
const WHEN = new RegExp(`^${DATE}(${TIME})?$`)
export const INVALID_WHEN = (name: string) =>
  `Invalid ${name}: must be a date like 2026-03-01 or a time like 2026-03-01T12:00:00Z`

const when = (name: 'from' | 'to', description: string) =>
  z
    .string(INVALID_WHEN(name))
    .regex(WHEN, INVALID_WHEN(name))
    .optional()
    .meta({ description, example: '2026-03-01' })

const SPAN = {
  from: when('from', 'The first day (UTC) or time. Default: 30 days or 24 hours before `to`.'),
  to: when('to', 'The last day (UTC), or the time before which the range ends. Default: now.'),
}

export const HitsQuery = z.object({
  ...SPAN,
  by: z
    .enum(['hour', 'day'], 'Invalid by: must be hour or day')
    .default('day')
    .meta({ description: 'Buckets of an hour (at most 31 days) or of a UTC day (at most 400).' }),
})
export type HitsQuery = z.infer<typeof HitsQuery>

const Count = z.int().min(0)
const Time = z.iso.datetime()

export const HitsView = z
  .object({
    from: Time.meta({ description: 'When the first bucket begins.' }),
    to: Time.meta({ description: 'When the last bucket ends.' }),
    by: z.enum(['hour', 'day']),
    time_zone: z.literal('UTC'),
    total: Count.meta({ description: 'Hits in all buckets.' }),
    buckets: z
      .array(z.object({ start: Time, hits: Count }).meta({ id: 'HitBucket' }))
      .meta({ description: 'In the order of time, also those without hits.' }),
  })
  .meta({ id: 'HitSeries' })
export type HitsView = z.infer<typeof HitsView>

export const LinkHitsView = z
  .object({ code: z.string().regex(CODE_PATTERN), ...HitsView.shape })
  .meta({ id: 'LinkHitSeries' })
export type LinkHitsView = z.infer<typeof LinkHitsView>

const VALUES_MAX = 1000

export const VisitsQuery = z.object({
  by: z
    .enum(VISIT_KINDS, `Invalid by: must be one of ${VISIT_KINDS.join(', ')}`)
    .default('referrer')
    .meta({ description: 'What the redirects are counted by.' }),
  ...SPAN,
  limit: wholeNumber(`Invalid limit: must be an integer between 1 and ${VALUES_MAX}`, {
    minimum: 1,
    maximum: VALUES_MAX,
    default: 10,
    description: 'How many values are listed.',
  }),
  format: z
    .enum(['json', 'csv'], 'Invalid format: must be json or csv')
    .default('json')
    .meta({ description: 'CSV contains the columns value, name and hits.' }),
})
export type VisitsQuery = z.infer<typeof VisitsQuery>

export const VisitsView = z
  .object({
    by: z.enum(VISIT_KINDS),
    from: Time.meta({ description: 'When the first UTC day begins.' }),
    to: Time.meta({ description: 'When the last UTC day ends.' }),
    hits: Count.meta({ description: 'All redirects of these days: exact, bots included.' }),
    known: Count.meta({ description: 'Redirects with details.' }),
    estimated: z
      .boolean()
      .meta({ description: 'Under much load, the sums are made from a part of the redirects.' }),
    people: Count.meta({ description: 'Redirects without those of bots, of those with details.' }),
    bots: Count.meta({ description: 'Redirects of bots and previews, of those with details.' }),
    values: z
      .array(
        z
          .object({
            value: z.string().meta({ description: 'A stable key.', example: 'google.com' }),
            name: z.string().meta({ example: 'Google' }),
            hits: Count,
          })
          .meta({ id: 'VisitValue' }),
      )
      .meta({ description: 'The most frequent first; without bots, unless `by` is `bot`.' }),
    other: Count.meta({ description: 'Redirects with values that are not listed.' }),
  })
  .meta({ id: 'VisitReport' })
export type VisitsView = z.infer<typeof VisitsView>

export const LinkVisitsView = z
  .object({
    code: z.string().regex(CODE_PATTERN),
    ...VisitsView.shape,
  })
  .meta({ id: 'LinkVisitReport' })
export type LinkVisitsView = z.infer<typeof LinkVisitsView>
