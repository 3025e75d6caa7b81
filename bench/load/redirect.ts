// What does a redirect cost in hopcode, beside a bare Bun.serve route that gives the same 302?
// npm run bench -- redirect --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type ClosedLoopFigures, closedLoop } from '../lib/closed-loop.ts'
import { Histogram } from '../lib/histogram.ts'
import { createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { CORES, isInstalled } from '../lib/machine.ts'
import { openLoopProcess } from '../lib/open-loop.ts'
import { machineBusySeconds } from '../lib/process-stats.ts'
import type { Target } from '../lib/raw-client.ts'
import { followLink, HitCheck, requireNoOtherHeaders } from '../lib/redirect-check.ts'
import { alternate, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { LoadOptions, Metric, Scenario, ScenarioReport } from '../lib/scenario.ts'
import { HOSTNAME, type Launch, type Server, startServer } from '../lib/server.ts'
import { requireFaultless } from '../lib/tally.ts'
import { BUDGET_MAX, bare, hopcode, hopcodeProgram, type Link, nginx } from '../lib/variants.ts'

const CODES = 100

const METRICS: Metric[] = [
  { key: 'requestsPerSecond', label: 'closed loop: requests/s', digits: 0, ratio: true },
  { key: 'cpuMicros', label: 'closed loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'closedP50', label: 'closed loop: p50, µs', digits: 0, ratio: true },
  { key: 'closedP99', label: 'closed loop: p99, µs', digits: 0, ratio: true },
  { key: 'openP50', label: 'open loop: p50, µs', digits: 0, ratio: true },
  { key: 'openP99', label: 'open loop: p99, µs', digits: 0, ratio: true },
  { key: 'openP999', label: 'open loop: p99.9, µs', digits: 0, ratio: true },
  { key: 'openCpuMicros', label: 'open loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'latenessP99', label: 'open loop: own lateness p99, µs', digits: 0, ratio: false },
  { key: 'residentMebibytes', label: 'memory after the load, MiB', digits: 0, ratio: true },
  { key: 'othersPercent', label: 'other work on the machine, %', digits: 1, ratio: false },
]

interface Contender {
  name: string
  launch: Launch
  /** Of the service: its hits and limits are then checked. */
  apiKey?: string
  /** Its answer has the agreed headers and no others. */
  sameHeaders: boolean
}

export const redirect: Scenario = {
  name: 'redirect',
  question:
    'What does a redirect cost in hopcode, beside a bare Bun.serve route with the same 302?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<ScenarioReport> {
  using folder = new TemporaryFolder()
  const dataDir = join(folder.path, 'data')
  mkdirSync(dataDir)
  say('preparing the service and its links')
  const program = await hopcodeProgram({ fromSource: options.source })
  const apiKey = createAccount(program, dataDir)
  const launch = hopcode(program, dataDir)
  const links = await makeLinks(launch, apiKey)
  const contenders: Contender[] = [
    { name: 'bare', launch: bare(folder.path, links), sameHeaders: true },
    { name: 'hopcode', launch, apiKey, sameHeaders: true },
  ]
  if (isInstalled('nginx')) {
    contenders.push({ name: 'nginx', launch: nginx(folder.path, links), sameHeaders: false })
  }
  const measure = (contender: Contender) => measureRound(contender, links, options)
  return {
    scenario: redirect.name,
    question: redirect.question,
    baseline: 'bare',
    settings: settingsOf(options),
    metrics: METRICS,
    variants: await alternate(contenders, options.rounds, measure, say),
    notes: notesOn(options),
  }
}

async function makeLinks(launch: Launch, apiKey: string): Promise<Link[]> {
  await using server = await startServer(launch)
  const urls = Array.from(
    { length: CODES },
    (_, n) => `https://example.com/landing/${n}?from=print`,
  )
  const links = await new HopcodeClient(server.origin, apiKey).createLinks(urls)
  await server.stop()
  return links
}

/** One fresh process: verified, warmed up, timed in both ways, checked and stopped. */
async function measureRound(
  { launch, apiKey, sameHeaders }: Contender,
  links: readonly Link[],
  options: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const hits = apiKey && new HitCheck(new HopcodeClient(server.origin, apiKey), links)
  if (hits) await hits.start()
  for (const link of links) {
    const headers = await followLink(server, link)
    if (sameHeaders) requireNoOtherHeaders(server.name, headers)
  }
  if (options.warmUp > 0) await closed(server, links, { ...options, seconds: options.warmUp })

  if (hits) await hits.begin()
  const closedPart = await measureClosed(server, links, options)
  if (hits)
    await hits.requireBetween(closedPart.requests, closedPart.requests + options.connections)

  if (hits) await hits.begin()
  const openPart = await measureOpen(server, links, options)
  if (hits) await hits.requireExactly(openPart.redirectsByLink)

  const figures = {
    ...closedPart.figures,
    ...openPart.figures,
    residentMebibytes: server.residentMebibytes(),
  }
  const [anyLink] = links
  if (hits && anyLink) await hits.requireCountedByLimiter(server, anyLink)
  await server.stop()
  return { figures, latency: openPart.latency }
}

async function measureClosed(server: Server, links: readonly Link[], options: LoadOptions) {
  const busyBefore = machineBusySeconds()
  const startedAt = performance.now()
  const cpuBefore = server.cpuSeconds()
  const result = await closed(server, links, options)
  const cpu = server.cpuSeconds() - cpuBefore
  const coreSeconds = ((performance.now() - startedAt) / 1000) * CORES
  const others = machineBusySeconds() - busyBefore - cpu - result.cpuSeconds
  const figures = {
    requestsPerSecond: result.requests / result.seconds,
    cpuMicros: (cpu / result.requests) * 1e6,
    closedP50: result.p50,
    closedP99: result.p99,
    othersPercent: Math.max(0, (others / coreSeconds) * 100),
  }
  return { figures, requests: result.requests }
}

async function closed(
  server: Server,
  links: readonly Link[],
  { connections, seconds }: LoadOptions,
): Promise<ClosedLoopFigures> {
  const { port } = server
  const targets = targetsOf(links)
  const result = await closedLoop({ hostname: HOSTNAME, port, targets, connections, seconds })
  if (result.failed > 0) {
    throw new Error(
      `${server.name}: ${result.failed} of ${result.requests} requests failed; with more than ` +
        `${BUDGET_MAX} a minute they are refused: take fewer --seconds`,
    )
  }
  return result
}

async function measureOpen(
  server: Server,
  links: readonly Link[],
  { connections, seconds, rate }: LoadOptions,
) {
  const cpuBefore = server.cpuSeconds()
  const { result } = await openLoopProcess({
    hostname: HOSTNAME,
    port: server.port,
    targets: targetsOf(links),
    ratePerSecond: rate,
    seconds,
    connections,
  })
  const cpu = server.cpuSeconds() - cpuBefore
  requireFaultless(result, `${server.name}, open loop`)
  if (result.saturated) throw new Error(`${server.name} cannot keep up with ${rate} requests/s`)
  const latency = Histogram.fromJson(result.latency)
  const figures = {
    openP50: latency.percentile(50) / 1000,
    openP99: latency.percentile(99) / 1000,
    openP999: latency.percentile(99.9) / 1000,
    openCpuMicros: (cpu / result.answered) * 1e6,
    latenessP99: Histogram.fromJson(result.lateness).percentile(99) / 1000,
  }
  return { figures, latency, redirectsByLink: result.rightByTarget }
}

const targetsOf = (links: readonly Link[]): Target[] =>
  links.map(({ code, url }) => ({ path: `/${code}`, status: 302, location: url }))

const settingsOf = ({ seconds, rounds, warmUp, connections, rate, source }: LoadOptions) => ({
  program: source ? 'source' : 'binary',
  codes: CODES,
  seconds,
  rounds,
  warmUp,
  connections,
  rate,
  closedLoopGenerator: isInstalled('wrk') ? 'wrk' : 'own',
})

function notesOn({ connections, rate }: LoadOptions): string[] {
  return [
    'Each round is a fresh process, and the codes are warm.',
    `Closed loop: ${connections} connections, as fast as the server answers.`,
    `Open loop: ${rate} requests/s whatever the server does, measured from when each was due.`,
    `The limiter is on: it counts all requests as one caller's, with ${BUDGET_MAX} a minute.`,
    'Every hit_count was compared with the redirects received, after every round.',
  ]
}
