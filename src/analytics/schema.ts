import { z } from 'zod'
import { DAYS_KEPT } from '../hits/series.ts'
import { CODE_PATTERN } from '../lib/code.ts'

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

export const HitsQuery = z.object({
  from: when('from', 'The first day (UTC) or time. Default: 30 days or 24 hours before `to`.'),
  to: when('to', 'The last day (UTC), or the time before which the range ends. Default: now.'),
  by: z
    .enum(['hour', 'day'], 'Invalid by: must be hour or day')
    .default('day')
    .meta({ description: 'Buckets of an hour (at most 31 days) or of a UTC day (at most 400).' }),
})
export type HitsQuery = z.infer<typeof HitsQuery>

const Count = z.int().min(0)
const Time = z.iso.datetime()

export const HitsView = z.object({
  from: Time.meta({ description: 'When the first bucket begins.' }),
  to: Time.meta({ description: 'When the last bucket ends.' }),
  by: z.enum(['hour', 'day']),
  time_zone: z.literal('UTC'),
  total: Count.meta({ description: 'Hits in all buckets.' }),
  buckets: z
    .array(z.object({ start: Time, hits: Count }))
    .meta({ description: 'In the order of time, also those without hits.' }),
})
export type HitsView = z.infer<typeof HitsView>

export const LinkHitsView = z.object({ code: z.string().regex(CODE_PATTERN), ...HitsView.shape })
export type LinkHitsView = z.infer<typeof LinkHitsView>
