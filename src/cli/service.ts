import { type Config, urlHost } from '../config.ts'
import { type Clock, isoTime } from '../lib/clock.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import { CommandError, parseUntil } from './args.ts'

/** Commands on the service as a whole. Each returns what it prints. */

const TIMEOUT_MS = 3000

/** Whether the service on this machine is ready: for a container's health check. */
export async function health({ host, port }: Config): Promise<string> {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  const address = `http://${urlHost(name)}:${port}/-/ready`
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(address, { signal }).catch((cause) => {
    throw new CommandError(`${address} does not answer`, { cause })
  })
  if (!response.ok) throw new CommandError(`${address} answers ${response.status}`)
  return 'ready'
}

export function beginMaintenance(mode: MaintenanceMode, clock: Clock, until: string): string {
  const end = parseUntil(until, clock())
  mode.begin(end)
  return `Maintenance until ${isoTime(end)}: the API answers 503. Short links still work.`
}

export function endMaintenance(mode: MaintenanceMode): string {
  mode.end()
  return 'No maintenance.'
}

export function showMaintenance(mode: MaintenanceMode): string {
  const until = mode.until()
  return until === undefined ? 'No maintenance.' : `Maintenance until ${isoTime(until)}.`
}
