import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Histogram } from './histogram.ts'
import { TemporaryFolder, tieToThisProcess } from './leftovers.ts'
import { isInstalled } from './machine.ts'
import { answerAsProcess, type OwnProcessResult, runInOwnProcess } from './own-process.ts'
import { Connection, NUMBER_MARK, RequestBytes, type Target } from './raw-client.ts'
import type { ResponseScanner } from './response-scanner.ts'
import { type LoadResult, LoadTally } from './tally.ts'

export interface ClosedLoopOptions {
  hostname: string
  port: number
  /** Taken in turn, again and again. */
  targets: Target[]
  /** Connections, each sending its next request as soon as the last is answered. */
  connections: number
  seconds: number
}

/** Ends a request in the file that wrk's script reads. */
const NUL = Buffer.from([0])

/** The figures that both generators can give. Latencies in microseconds. */
export interface ClosedLoopFigures {
  generator: 'wrk' | 'own'
  /**
   * Answers that came within `seconds`. A last request of each connection may have been served
   * beyond it.
   */
  requests: number
  seconds: number
  p50: number
  p99: number
  /** Requests without a right answer; for wrk: that failed, or whose status was 400 or more. */
  failed: number
  /** User and system time of the generator. */
  cpuSeconds: number
}

/**
 * As fast as the server answers: with wrk where it is installed, which costs less than our own
 * generator.
 */
export function closedLoop(options: ClosedLoopOptions): Promise<ClosedLoopFigures> {
  return isInstalled('wrk') && options.targets.every(fitsWrk)
    ? wrkClosedLoop(options)
    : ownClosedLoop(options)
}

/** wrk repeats the same bytes and takes every status from 400 on for a failure. */
const fitsWrk = ({ path, body = '', status }: Target) =>
  status < 400 && !path.includes(NUMBER_MARK) && !body.includes(NUMBER_MARK)

/** Our generator in a process of its own, which judges every answer. */
export async function ownClosedLoop(options: ClosedLoopOptions): Promise<ClosedLoopFigures> {
  const { result, cpuSeconds }: OwnProcessResult<LoadResult> = await runInOwnProcess(
    new URL(import.meta.url),
    options,
  )
  const latency = Histogram.fromJson(result.latency)
  return {
    generator: 'own',
    requests: result.answered,
    seconds: result.seconds,
    p50: latency.percentile(50) / 1000,
    p99: latency.percentile(99) / 1000,
    failed: result.wrong + result.lost + result.unanswered,
    cpuSeconds,
  }
}

/**
 * wrk judges no answer beyond `status < 400`: verify some before and the service's own count after.
 */
export async function wrkClosedLoop(options: ClosedLoopOptions): Promise<ClosedLoopFigures> {
  using folder = new TemporaryFolder()
  const host = `${options.hostname}:${options.port}`
  const requestsFile = join(folder.path, 'requests')
  const requests = options.targets.map((target) => new RequestBytes(target, host).numbered(0))
  writeFileSync(requestsFile, Buffer.concat(requests.flatMap((bytes) => [bytes, NUL])))
  const script = join(folder.path, 'script.lua')
  writeFileSync(script, wrkScript(requestsFile))
  const load = ['-t1', `-c${options.connections}`, `-d${Math.ceil(options.seconds)}s`]
  const child = Bun.spawn(['wrk', ...load, '-s', script, `http://${host}/`], {
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: (options.seconds + 30) * 1000,
  })
  tieToThisProcess(child)
  const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited])
  if (exitCode !== 0) throw new Error(`wrk ended with ${exitCode}`)
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
  const [last = ''] = text.trim().split('\n').slice(-1)
  return { generator: 'wrk', ...(JSON.parse(last) as WrkSummary), cpuSeconds }
}

type WrkSummary = Omit<ClosedLoopFigures, 'generator' | 'cpuSeconds'>

/** Takes the requests of the file in turn and prints the sums as one line of JSON. */
const wrkScript = (requestsFile: string) => `local requests, at = {}, 0
function init(args)
  for request in io.open(${JSON.stringify(requestsFile)}, "rb"):read("*a"):gmatch("[^%z]+") do
    requests[#requests + 1] = request
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"seconds":%.6f,"p50":%d,"p99":%d,"failed":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
`

/**
 * Every connection sends its next request at once; after `seconds` the last answers are waited for.
 */
async function generate(options: ClosedLoopOptions): Promise<LoadResult> {
  const { hostname, port, targets, seconds } = options
  const tally = new LoadTally(targets)
  const requests = targets.map((target) => new RequestBytes(target, `${hostname}:${port}`))
  const finished = Promise.withResolvers<void>()
  let sent = 0
  let stopping = false
  let lastAnswerAt = 0

  const send = (connection: Connection) => {
    const index = sent % targets.length
    connection.number = sent
    connection.intendedAt = Bun.nanoseconds()
    tally.sent()
    sent += 1
    const bytes = requests[index]?.numbered(connection.number)
    if (bytes) connection.send(bytes, targets[index]?.method)
  }
  const answered = (connection: Connection, scanner: ResponseScanner) => {
    lastAnswerAt = Bun.nanoseconds()
    const latencyNs = lastAnswerAt - connection.intendedAt
    tally.answered(connection.number % targets.length, scanner, latencyNs)
    if (!stopping && !scanner.closes) send(connection)
    else if (tally.open === 0) finished.resolve()
  }
  const lost = (_: Connection, inFlight: boolean, reason: string) => {
    if (inFlight) tally.lost(reason)
    if (tally.open === 0) finished.resolve()
  }

  const connections = Array.from(
    { length: options.connections },
    () => new Connection({ answered, lost }),
  )
  await Promise.all(connections.map((connection) => connection.open(hostname, port)))
  const startedAt = Bun.nanoseconds()
  for (const connection of connections) send(connection)
  setTimeout(() => {
    stopping = true
  }, seconds * 1000)
  const deadline = setTimeout(finished.resolve, (seconds + 5) * 1000)
  await finished.promise
  clearTimeout(deadline)
  for (const connection of connections) connection.close()
  return tally.result((lastAnswerAt - startedAt) / 1e9)
}

if (import.meta.main) await answerAsProcess(generate)
