import { z } from 'zod'
import { parseIsoTime } from '../lib/clock.ts'

const TIME_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** A time in a request, as epoch milliseconds. */
export function timeBody(name: string) {
  const message = `Invalid ${name}: must be a time such as 2026-03-01T12:00:00.000Z`
  return z
    .string(message)
    .regex(TIME_PATTERN, message)
    .meta({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' })
    .transform((text, context): number => {
      const time = parseIsoTime(text)
      if (time !== undefined) return time
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
}
