import type { Command } from '@commander-js/extra-typings'
import { type Config, readConfig } from '../config.ts'
import { isoTime, wallClock } from '../lib/clock.ts'
import { localAddress } from '../lib/local-address.ts'
import { print } from '../lib/log.ts'
import { maintenanceSetting } from '../maintenance/mode.ts'
import { type Administration, operatorOf, printing } from './administration.ts'
import { CommandError, ProblemsFound } from './errors.ts'
import { type Flag, JSON_OBJECT, untilParser } from './options.ts'
import { findService } from './socket.ts'

export function addMaintenanceCommands(program: Command): void {
  const maintenance = program.command('maintenance').description('planned maintenance of the API')
  maintenance
    .command('on')
    .description('answer API requests with 503; short links still work')
    .requiredOption(
      '--until <T>',
      'an ISO 8601 time, or 30m, 2h, 1d from now',
      untilParser(wallClock),
    )
    .option(...JSON_OBJECT)
    .action((options) => run('beginMaintenance', options))
  maintenance
    .command('off')
    .description('end maintenance')
    .option(...JSON_OBJECT)
    .action((options) => run('endMaintenance', options))
  maintenance
    .command('status')
    .description('show whether maintenance is on')
    .option(...JSON_OBJECT)
    .action((options) => run('showMaintenance', options))
}

export function addHealthCommand(program: Command): void {
  program
    .command('health')
    .description('exit 0 if the service on this machine is ready')
    .option(...JSON_OBJECT)
    .action(async ({ json }) => {
      const config = readConfig()
      const found = await health(config, (await findService(config.dataDir))?.address)
      if (json) print(JSON.stringify({ ready: found.reason === undefined, ...found }))
      else if (found.reason === undefined) print('ready')
      else throw new CommandError(`${found.url} ${found.reason}`)
      if (found.reason !== undefined) throw new ProblemsFound()
    })
}

/** What the commands run. Each function returns what is printed. */
export const maintenanceCommands = { beginMaintenance, endMaintenance, showMaintenance }

const run = printing(maintenanceCommands)

const TIMEOUT_MS = 3000

/**
 * Whether the service on this machine is ready: for a container's health check. `address`: the one
 * that a running service has recorded. A service that is not ready has a reason.
 */
async function health(
  { host, port }: Config,
  address?: string,
): Promise<{ url: string; reason?: string }> {
  const url = `${address ?? localAddress(host, port)}/-/ready`
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(url, { signal }).catch(() => undefined)
  if (!response) return { url, reason: 'does not answer. Is the service running?' }
  if (response.ok) return { url }
  const { reason } = (await response.json().catch(() => ({}))) as { reason?: string }
  return { url, reason: `answers ${response.status}${reason ? `: ${reason}` : ''}` }
}

async function beginMaintenance(
  deps: Administration,
  { until, json }: { until: number; json?: Flag },
): Promise<string> {
  await deps.data.settings.save({ author: operatorOf(deps), ...maintenanceSetting(until) })
  if (json) return maintenanceJson(until)
  return `Maintenance until ${isoTime(until)}: the API answers 503. Short links still work.`
}

async function endMaintenance(deps: Administration, { json }: { json?: Flag }): Promise<string> {
  await deps.data.settings.save({ author: operatorOf(deps), ...maintenanceSetting(undefined) })
  return json ? maintenanceJson(undefined) : 'No maintenance.'
}

/** `until` is null without maintenance. */
const maintenanceJson = (until: number | undefined): string =>
  JSON.stringify({ until: until === undefined ? null : isoTime(until) })

function showMaintenance({ maintenance }: Administration, { json }: { json?: Flag }): string {
  const until = maintenance.until()
  if (json) return maintenanceJson(until)
  return until === undefined ? 'No maintenance.' : `Maintenance until ${isoTime(until)}.`
}
