import { type Config, urlHost } from '../config.ts'
import { type Clock, isoTime } from '../lib/clock.ts'
import { type MaintenanceMode, maintenanceSetting } from '../maintenance/mode.ts'
import { CommandError, parseUntil } from './args.ts'
import type { CommandWriter } from './writer.ts'

/** Commands on the service as a whole. Each returns what it prints. */

const TIMEOUT_MS = 3000

/** Where a service with these settings answers on this machine. */
export function localAddress(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${urlHost(name)}:${port}`
}

/**
 * Whether the service on this machine is ready: for a container's health check. `address`: the one
 * that a running service has recorded.
 */
export async function health({ host, port }: Config, address?: string): Promise<string> {
  const url = `${address ?? localAddress(host, port)}/-/ready`
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(url, { signal }).catch((cause) => {
    throw new CommandError(`${url} does not answer. Is the service running?`, { cause })
  })
  if (!response.ok) {
    const { reason } = (await response.json().catch(() => ({}))) as { reason?: string }
    throw new CommandError(`${url} answers ${response.status}${reason ? `: ${reason}` : ''}`)
  }
  return 'ready'
}

export async function beginMaintenance(
  { writer, clock }: { writer: CommandWriter; clock: Clock },
  { until }: { until: string },
): Promise<string> {
  const end = parseUntil(until, clock())
  await writer.call('saveSetting', maintenanceSetting(end))
  return `Maintenance until ${isoTime(end)}: the API answers 503. Short links still work.`
}

export async function endMaintenance({ writer }: { writer: CommandWriter }): Promise<string> {
  await writer.call('saveSetting', maintenanceSetting(undefined))
  return 'No maintenance.'
}

export function showMaintenance(mode: MaintenanceMode): string {
  const until = mode.until()
  return until === undefined ? 'No maintenance.' : `Maintenance until ${isoTime(until)}.`
}
