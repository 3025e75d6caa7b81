import { runInOwnProcess } from './own-process.ts'
import type { Target } from './request.ts'

export interface LoadOptions {
  connections: number
  /** Duration; of all servers together. */
  seconds: number
  /** Requests that a connection sends in one piece, at most. Default: 1. */
  batch?: number
  /** How long to wait for the last responses. Default: 5. */
  drainSeconds?: number
}

/** Which side closes a connection after one response. `kept`: neither. */
export type ConnectionUse = 'kept' | 'server closes' | 'visitor closes'

/** Each connection sends its next requests as soon as the last ones are answered. */
export interface ClosedLoad extends LoadOptions {
  /** With one request per connection, latencies begin with the connection. Default: `kept`. */
  use?: ConnectionUse
  /** The number of the first request, which chooses its target and its text. Default: 0. */
  firstNumber?: number
  /** To each server: the load ends after as many, rounded up to whole batches. */
  requestsMax?: number
  /** The servers have alternating time slices, so that noise affects all alike. Default: one. */
  sliceSeconds?: number
}

/** Requests are due at a fixed rate, whether or not the server keeps up. */
export interface OpenLoad extends LoadOptions {
  ratePerSecond: number
  /** Sent before and not timed: meanwhile the engine compiles the generator. Default: 0. */
  untimedSeconds?: number
  /** With more due requests that wait for a free connection, the run ends. Default: 2 s of them. */
  backlogMax?: number
  /**
   * Milliseconds that the generator sleeps between two readings of the clock; without sleeping it
   * uses a whole core. Requests are sent, and responses noticed, later by as much. Default: 0.
   */
  sleepMs?: number
  /**
   * `background`: its latencies do not matter. `real-time`: waiting for a core is not measured;
   * only with `sleepMs` and at rates that leave its core idle most of the time, because Linux
   * throttles real-time threads that do not sleep. Default: short time slices.
   */
  priority?: 'background' | 'real-time'
}

/** Another server than one on loopback without TLS. */
export interface Remote {
  /** An IP address. */
  address: string
  /** The header `Host`. */
  host: string
  /** `ca`: a certificate that is trusted beside the usual ones. */
  tls?: { serverName: string; ca?: string; resumes?: boolean }
}

export interface LoadedServer {
  port: number
  remote?: Remote
  /** Used round-robin. With batches, each has a `location` of its own. */
  targets: Target[]
}

/** Microseconds. */
export interface Percentiles {
  p50: number
  p99: number
  p999: number
  max: number
}

/** Every request is answered, lost, unanswered or unsent. */
export interface LoadResult {
  answered: number
  /** Correct responses of each target, in the order of the targets. */
  rightByTarget: number[]
  /** Responses whose status, Location or length differs from that of their target. */
  wrong: number
  /** Requests whose connection broke. */
  lost: number
  /** Requests still open at the end. */
  unanswered: number
  /** Requests of an open loop that were due and never sent. */
  unsent: number
  /** The first wrong response, or why the first connection was lost. */
  firstFault?: string
  /** Connections that resumed a TLS session. */
  resumed: number
  /** From the first send to the last answer of each time slice. */
  seconds: number
  /**
   * Of answered requests; in a closed loop, of batches. An open loop measures from the moment when
   * a request was due: a stall of the server shows in every request that fell due meanwhile (after
   * Gil Tene's "coordinated omission"). Batches are timed from when they were sent, if there was a
   * free connection.
   */
  latency: Percentiles
  /** By which an open loop itself was late while a connection was free. */
  lateness: Percentiles
  /** User and system time of the generator, for all servers. */
  cpuSeconds: number
}

/** What wrk finds out too. */
export type ClosedResult = Pick<LoadResult, 'answered' | 'wrong' | 'seconds' | 'cpuSeconds'> & {
  latency: Pick<Percentiles, 'p50' | 'p99'>
}

/** Input of the generator's process. */
export type LoadInput = { servers: LoadedServer[] } & (ClosedLoad | OpenLoad)

/**
 * Sends requests over raw keep-alive connections in a separate process, whose CPU time is not
 * counted as the caller's. Every response is checked, but of a batch only the last one: verify some
 * before, and the counts of the service after. Throws if a connection cannot be opened.
 */
export async function generateLoad(
  server: LoadedServer,
  load: ClosedLoad | OpenLoad,
): Promise<LoadResult> {
  return (await generateLoads([server], load))[0] as LoadResult
}

/** A closed loop for several servers in alternating time slices. Returns the result of each. */
export async function generateLoads(
  servers: LoadedServer[],
  load: ClosedLoad | OpenLoad,
): Promise<LoadResult[]> {
  const file = new URL('load-generator.ts', import.meta.url)
  const input: LoadInput = { servers, ...load }
  const { result, cpuSeconds } = await runInOwnProcess<Omit<LoadResult, 'cpuSeconds'>[]>(
    file,
    input,
  )
  return result.map((part) => ({ ...part, cpuSeconds }))
}

/** Throws Error unless every request got the response that its target expects. */
export function requireFaultless(result: LoadResult, what: string): void {
  const { answered, wrong, lost, unanswered, unsent } = result
  if (wrong + lost + unanswered + unsent === 0) return
  const first = result.firstFault ?? (unsent > 0 ? 'it cannot keep up' : 'no answer in time')
  const counts = `${wrong} wrong, ${lost} lost, ${unanswered} unanswered and ${unsent} unsent`
  const total = answered + lost + unanswered + unsent
  throw new Error(`${what}: ${counts} of ${total} requests (first: ${first})`)
}
