// How long do the link pages of the dashboard take in an account of a million links?
// npm run bench -- dashboard --seconds 3 --rounds 5
import { ownClosedLoop } from '../lib/closed-loop.ts'
import { issueResetPath, setPassword } from '../lib/dashboard-client.ts'
import { MILLION, type MillionFolder } from '../lib/million.ts'
import { millionPlace } from '../lib/place.ts'
import { alternate, medianOf, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { HOSTNAME, type Launch, startServer } from '../lib/server.ts'

const PASSWORD = 'a password of the bench'
const ROWS = 50
const COUNTED_MAX_MS = 20_000
const COUNTED_POLL_MS = 20
const BAR_MS = 100

const METRICS: Metric[] = [
  { key: 'p50', label: 'p50, ms', digits: 2, ratio: false },
  { key: 'p99', label: 'p99, ms', digits: 2, ratio: false },
  { key: 'cpu', label: 'CPU of the service a page, ms', digits: 2, ratio: false },
  { key: 'first', label: 'the first one, ms', digits: 1, ratio: false },
  { key: 'counted', label: 'until the number is there, ms', digits: 0, ratio: false },
  { key: 'requests', label: 'requests measured', digits: 0, ratio: false },
]

/** One kind of page. `says`: a text that it must contain. */
interface Variant {
  name: string
  query: string
  says: string
  /** Only the list, as htmx requests it. */
  isPart?: boolean
  /** Rows that it must have. */
  rows?: number
}

const ALL = '1,000,000'
const VARIANTS: readonly Variant[] = [
  { name: 'the first page', query: '', says: `${ALL} links` },
  { name: 'the next page', query: '?page=2', says: 'Page 2 of 20,000' },
  { name: 'the page at 500,000', query: '?page=10001', says: 'Page 10,001 of 20,000' },
  { name: 'typing what all have', query: '?q=https', says: `${ALL} of ${ALL} links`, isPart: true },
  { name: 'its next page', query: '?q=https&page=2', says: 'Page 2 of 20,000' },
  { name: 'typing two characters', query: '?q=qu', says: `of ${ALL} links`, isPart: true },
  {
    name: 'typing what none has',
    query: '?q=qqxyzzy',
    says: 'Nothing found',
    isPart: true,
    rows: 0,
  },
  { name: 'most hits first', query: '?sort=hits', says: 'Page 1 of 200' },
]

export const dashboard: Scenario = {
  name: 'dashboard',
  question: 'How long do the pages of an account of a million links take?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using place = await millionPlace(options, say)
  const { folder, launch } = place
  const measure = (variant: Variant) => measureRound(variant, launch, folder, options.seconds)
  const variants = await alternate(VARIANTS, options.rounds, measure, say)
  const judged = VARIANTS.filter(({ name }) => name !== 'most hits first')
  return {
    settings: { seconds: options.seconds, rounds: options.rounds, links: MILLION, rows: ROWS },
    metrics: METRICS,
    variants,
    bars: judged.flatMap(({ name }) =>
      (['p99', 'first'] as const).map((key) => ({
        label: `${key === 'p99' ? 'p99' : 'the first one'} of ${name}, of a million links`,
        value: medianOf(variants, name, key),
        unit: ' ms',
        digits: 1,
        demand: { sense: '≤', bar: BAR_MS } as const,
      })),
    ),
    notes: [
      `One request at a time, ${ROWS} rows a page, of one account with ${MILLION} links.`,
      'Typing: the part of the page that a search asks for with each pause. Others: whole pages.',
      'The first one after a start: nothing of its list is counted yet; where that takes long ' +
        'it comes without the number of matches. The others come when that is known.',
    ],
  }
}

async function measureRound(
  { query, says, isPart = false, rows = ROWS }: Variant,
  launch: Launch,
  folder: MillionFolder,
  seconds: number,
): Promise<RoundResult> {
  const resetPath = issueResetPath(folder.path)
  await using server = await startServer(launch)
  const headers = {
    Cookie: await setPassword(server.origin, resetPath, PASSWORD),
    ...(isPart && { 'HX-Request': 'true', 'HX-Target': 'list' }),
  }
  const path = `/app/links${query}`
  const look = async () => {
    const startedAt = performance.now()
    const text = await (await fetch(server.origin + path, { headers })).text()
    const found = text.split('<data class="code"').length - 1
    if (found !== rows) throw new Error(`${path} has ${found} rows, not ${rows}`)
    return { elapsedMs: performance.now() - startedAt, isCounted: text.includes(says) }
  }
  const startedAt = performance.now()
  const { elapsedMs: first, isCounted } = await look()
  for (let isDone = isCounted; !isDone; isDone = (await look()).isCounted) {
    if (performance.now() > startedAt + COUNTED_MAX_MS) throw new Error(`${path} lacks ${says}`)
    await Bun.sleep(COUNTED_POLL_MS)
  }
  const counted = performance.now() - startedAt
  const before = server.cpuSeconds()
  const result = await ownClosedLoop({
    hostname: HOSTNAME,
    port: server.port,
    seconds,
    connections: 1,
    targets: [{ path, headers, status: 200 }],
  })
  const cpuSeconds = server.cpuSeconds() - before
  const { p50, p99, requests } = result
  if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests failed`)
  if (!(await look()).isCounted) throw new Error(`${path} does not say ${says}`)
  await server.stop()
  const cpu = (1000 * cpuSeconds) / requests
  return { figures: { p50: p50 / 1000, p99: p99 / 1000, cpu, first, counted, requests } }
}
