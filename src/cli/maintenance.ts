import { type Clock, isoTime } from '../lib/clock.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import { parseUntil } from './args.ts'

export function begin(mode: MaintenanceMode, clock: Clock, until: string): string {
  const end = parseUntil(until, clock())
  mode.begin(end)
  return `Maintenance until ${isoTime(end)}: the API answers 503, short links and images go on.`
}

export function end(mode: MaintenanceMode): string {
  mode.end()
  return 'No maintenance.'
}

export function show(mode: MaintenanceMode): string {
  const until = mode.until()
  return until === undefined ? 'No maintenance.' : `Maintenance until ${isoTime(until)}.`
}
