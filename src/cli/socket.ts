import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { DataError } from '../lib/data-error.ts'
import { machineFailure } from '../lib/disk-refusal.ts'
import type { Log } from '../lib/log.ts'
import { refuseLink } from '../lib/symbolic-links.ts'
import { messageOf } from '../lib/thread.ts'
import { VERSION } from '../lib/version.ts'
import { CommandError } from './errors.ts'

/**
 * Typed calls of commands to the running service, as HTTP over a Unix socket in the data folder.
 * Only the user of the service can connect.
 */

/** Functions of the service, by name. */
export type Functions<Deps> = Record<string, (deps: Deps, args: never) => unknown>

/** The same functions for a caller. */
export type Calls<Commands extends Functions<never>> = {
  [Name in keyof Commands]: (args: Parameters<Commands[Name]>[1]) => ReturnType<Commands[Name]>
}

const SOCKET = 'serving.sock'
const CALL_BYTES_MAX = 1024 * 1024
/** A service that answers later hangs, or its machine is overloaded. */
const GREETING_MS = 3000
const REFUSED = 422

const WebUrl = z.string().regex(/^https?:\/\/[^\s/]+/)

/** What the service says about itself, and how to reach it. */
const Greeting = z.object({
  version: z.string(),
  base_url: WebUrl,
  /** Where it answers on this machine. */
  address: WebUrl,
})

type RunningService = z.infer<typeof Greeting> & { unix: string }

interface SocketOptions<Deps> {
  dataDir: string
  commands: Functions<Deps>
  deps: Deps
  greeting: Omit<z.infer<typeof Greeting>, 'version'>
  log: Log
}

/** For the holder of the folder's lock. A service that was killed has left its socket. */
export function serveCommands<Deps>(options: SocketOptions<Deps>): Bun.Server<undefined> {
  const unix = join(options.dataDir, SOCKET)
  rmSync(unix, { force: true })
  const server = Bun.serve({
    unix,
    maxRequestBodySize: CALL_BYTES_MAX,
    // None, because a call may wait for the disk or for another host. The types do not know it.
    idleTimeout: 0 as never,
    fetch: (request) =>
      request.method === 'GET'
        ? Response.json({ version: VERSION, ...options.greeting })
        : answer(options, request),
  })
  chmodSync(unix, 0o600)
  return server
}

async function answer<Deps>(options: SocketOptions<Deps>, request: Request): Promise<Response> {
  const name = new URL(request.url).pathname.slice(1)
  const { commands, deps, log } = options
  const run = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!run) return new Response(null, { status: 404 })
  try {
    const { args } = (await request.json()) as { args: never }
    return Response.json({ value: await run(deps, args) })
  } catch (error) {
    const isExpected = [CommandError, DataError, AppError].some((kind) => error instanceof kind)
    if (!isExpected) log.error('command.failed', { command: name }, error)
    const failure = isExpected ? undefined : machineFailure(error)
    const message = failure ? `${failure}: ${messageOf(error)}` : messageOf(error)
    return Response.json({ error: message }, { status: REFUSED })
  }
}

/**
 * Undefined if no service accepts commands of this user. Throws CommandError if one does not
 * answer.
 */
export async function findService(dataDir: string): Promise<RunningService | undefined> {
  const unix = join(dataDir, SOCKET)
  refuseLink(unix)
  try {
    const signal = AbortSignal.timeout(GREETING_MS)
    const response = await fetch('http://service/', { unix, signal })
    return { ...Greeting.parse(await response.json()), unix }
  } catch (error) {
    if ((error as Error).name !== 'TimeoutError') return undefined
    throw new CommandError(`The service that uses ${dataDir} does not answer.`)
  }
}

const Answer = z.union([z.object({ error: z.string() }), z.object({ value: z.unknown() })])

/** Throws CommandError if the service refuses. */
export async function callService(
  { unix, version }: RunningService,
  name: string,
  args: unknown,
): Promise<unknown> {
  const body = JSON.stringify({ args })
  const response = await fetch(`http://service/${name}`, { unix, method: 'POST', body }).catch(
    failEnded,
  )
  if (response.status === 404) {
    throw new CommandError(
      `The running service is another release (${version}; this command is of ${VERSION}): ` +
        'restart it.',
    )
  }
  if (!response.ok && response.status !== REFUSED) {
    throw new CommandError(`The service refuses the call (HTTP ${response.status}).`)
  }
  const outcome = Answer.parse(await response.json().catch(failEnded))
  if ('error' in outcome) throw new CommandError(outcome.error)
  return outcome.value
}

function failEnded(cause: unknown): never {
  throw new CommandError(
    'The service ended before it answered. See whether it has made the change.',
    { cause },
  )
}
