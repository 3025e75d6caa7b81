import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TemporaryFolder, tieToThisProcess } from './leftovers.ts'
import type { ClosedLoad, ClosedResult, LoadedServer } from './load.ts'
import { NUMBER_MARK, RequestBytes, type Target, TEXT_LENGTH } from './request.ts'
import { HOSTNAME } from './server.ts'

/** Ends a request in the file that wrk's script reads. */
const NUL = Buffer.from([0])

/** Whether wrk can send these and detect wrong responses: it checks only the status. */
export const fitsWrk = (targets: readonly Target[]): boolean =>
  targets.every(
    ({ status, bodyBytes, textsFile }) =>
      bodyBytes === undefined &&
      status === targets[0]?.status &&
      textsFile === targets[0]?.textsFile,
  )

/**
 * wrk checks only the status, and for an expected status below 400 only that it is below 400,
 * because checking each response is expensive. Verify some responses before, and the counts of the
 * service after: it may have answered one more per connection.
 */
export async function wrkLoad(
  { port, targets }: LoadedServer,
  load: ClosedLoad,
): Promise<ClosedResult> {
  using folder = new TemporaryFolder()
  const host = `${HOSTNAME}:${port}`
  const requestsFile = join(folder.path, 'requests')
  const requests = targets.map((target) => new RequestBytes(target, host).marked)
  writeFileSync(requestsFile, Buffer.concat(requests.flatMap((bytes) => [bytes, NUL])))
  const script = join(folder.path, 'script.lua')
  writeFileSync(script, wrkScript(requestsFile, targets, load.firstNumber))
  const options = ['-t1', `-c${load.connections}`, `-d${Math.ceil(load.seconds)}s`]
  const child = Bun.spawn(['wrk', ...options, '-s', script, `http://${host}/`], {
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: (load.seconds + 30) * 1000,
  })
  tieToThisProcess(child)
  const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited])
  if (exitCode !== 0) throw new Error(`wrk ended with ${exitCode}`)
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
  const [last = ''] = text.trim().split('\n').slice(-1)
  return { ...(JSON.parse(last) as Omit<ClosedResult, 'cpuSeconds'>), cpuSeconds }
}

/**
 * Sends the requests of the file in turn with their number or text inserted, and prints the sums as
 * one line of JSON.
 */
function wrkScript(requestsFile: string, [target]: readonly Target[], firstNumber = 0): string {
  const { textsFile, status = 0 } = target ?? {}
  const errors = 'errors.connect + errors.read + errors.write + errors.timeout'
  const judge = `function response(s) if s ~= ${status} then wrong = wrong + 1 end end`
  // wrk calls request() once before the load begins, so the count starts one lower.
  return `local heads, tails, texts, number, main = {}, {}, nil, ${firstNumber} - 1, nil
wrong = 0
function setup(thread)
  main = thread
end
function init(args)
  for bytes in io.open(${JSON.stringify(requestsFile)}, "rb"):read("*a"):gmatch("[^%z]+") do
    local from, to = bytes:find("${NUMBER_MARK}", 1, true)
    heads[#heads + 1] = from and bytes:sub(1, from - 1) or bytes
    tails[#heads] = from and bytes:sub(to + 1)
  end
  ${textsFile === undefined ? '' : `texts = io.open(${JSON.stringify(textsFile)}, "rb"):read("*a")`}
end
local function mark(n)
  if not texts then return string.format("%0${TEXT_LENGTH}d", n % 10 ^ ${TEXT_LENGTH}) end
  local from = n % (#texts / ${TEXT_LENGTH}) * ${TEXT_LENGTH}
  return texts:sub(from + 1, from + ${TEXT_LENGTH})
end
function request()
  local n, at = number, number % #heads + 1
  number = number + 1
  return tails[at] and heads[at] .. mark(n) .. tails[at] or heads[at]
end
${status < 400 ? '' : judge}
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"answered":%d,"seconds":%.6f,"latency":{"p50":%d,"p99":%d},"wrong":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    ${errors} + ${status < 400 ? 'errors.status' : 'main:get("wrong")'}))
end
`
}
