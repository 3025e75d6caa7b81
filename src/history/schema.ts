import { z } from 'zod'
import { ACTOR_KINDS, EVENT_KINDS } from '../db/history.ts'
import { isoTime } from '../lib/clock.ts'
import { strictBody, wholeNumber } from '../links/schema.ts'
import type { EventRow } from './subject.ts'

/** Events as the API shows them. */

const LIMIT_MAX = 100

export const HistoryQuery = strictBody(
  {
    limit: wholeNumber(`Invalid limit: must be an integer between 1 and ${LIMIT_MAX}`, {
      minimum: 1,
      maximum: LIMIT_MAX,
      default: 20,
      description: 'How many events to give.',
    }),
    before: z
      .string()
      .regex(/^[1-9]\d{0,14}$/, 'Invalid before: must be `next` of another page')
      .optional()
      .meta({ description: '`next` of the page before.' }),
  },
  'Invalid query',
)

const Value = z.unknown().meta({
  description:
    'Of `created` and `destination` a URL; of `destinations` and `aliases` a list, of aliases ' +
    'only those removed and added; of `domain` a host; of `state` the changed properties; of ' +
    '`moved` names of accounts; of `disabled` the reason; of `deleted` the code, of one link ' +
    'alone; of `dead` and `alive` what the destination has answered. Else null.',
})

const HistoryEvent = z
  .object({
    at: z.string().meta({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' }),
    kind: z.enum(EVENT_KINDS),
    actor: z
      .object({ kind: z.enum(ACTOR_KINDS), name: z.string().nullable() })
      .meta({ id: 'HistoryActor' }),
    before: Value,
    after: Value,
    links: z.int().min(1).meta({ description: 'More than 1: of a batch.' }),
  })
  .meta({ id: 'HistoryEvent' })
export type HistoryEvent = z.infer<typeof HistoryEvent>

export const HistoryView = z
  .object({
    items: z.array(HistoryEvent),
    next: z.string().nullable().meta({ description: 'For `before`; null on the last page.' }),
  })
  .meta({ id: 'LinkHistory' })

export const eventOf = ({ at, kind, actorKind, actor, before, after, links }: EventRow) =>
  ({
    at: isoTime(at),
    kind: kind as HistoryEvent['kind'],
    actor: { kind: actorKind as HistoryEvent['actor']['kind'], name: actor },
    before: JSON.parse(before ?? 'null'),
    after: JSON.parse(after ?? 'null'),
    links,
  }) satisfies HistoryEvent
