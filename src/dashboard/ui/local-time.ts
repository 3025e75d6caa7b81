import { isoTime, zonedTime } from '../../lib/clock.ts'
import { type Html, html } from '../../lib/html.ts'
import { longDate } from './chart.ts'
import { zoneName } from './hit-chart.ts'

/** Times in a time zone, as the field `datetime-local` and sentences show them. */

/** The value of a field: `2026-03-01T21:00`. Seconds are left out. */
export const localText = (epochMs: number, zone: string): string =>
  zonedTime(epochMs, zone).toPlainDateTime().toString({ smallestUnit: 'minute' })

/**
 * The epoch time of a field's value. The first of two times if clocks go back. Undefined for a text
 * that is not a time, and for a time that clocks skip.
 */
export function parseLocal(text: string, zone: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text)) return undefined
  try {
    const local = Temporal.PlainDateTime.from(text, { overflow: 'reject' })
    const found = local.toZonedDateTime(zone, { disambiguation: 'earlier' })
    return found.toPlainDateTime().equals(local) ? found.epochMilliseconds : undefined
  } catch {
    return undefined
  }
}

/** `1 Mar 2026, 21:00 (Europe/Berlin)`, with the offset for a time that occurs twice. */
export function longTime(epochMs: number, zone: string): string {
  const time = zonedTime(epochMs, zone)
  const clock = time.toPlainTime().toString({ smallestUnit: 'minute' })
  const [earlier, later] = (['earlier', 'later'] as const).map((disambiguation) =>
    time.toPlainDateTime().toZonedDateTime(zone, { disambiguation }),
  )
  const isTwice = earlier?.offset !== later?.offset
  const zoneText = isTwice ? `${zoneName(zone)}, UTC${time.offset}` : zoneName(zone)
  return `${longDate(time.toPlainDate())}, ${clock} (${zoneText})`
}

/** `21:00:30 (Europe/Berlin)`: a time of today. */
export function exactTime(epochMs: number, zone: string): string {
  const time = zonedTime(epochMs, zone).toPlainTime()
  return `${time.toString({ smallestUnit: 'second' })} (${zoneName(zone)})`
}

/** The day of an epoch time. The script adds the time, which is shown on hover. */
export const day = (epochMs: number, { zone }: { zone: string }): Html => {
  const date = longDate(zonedTime(epochMs, zone).toPlainDate())
  return html`<time datetime="${isoTime(epochMs)}" data-age>${date}</time>`
}
