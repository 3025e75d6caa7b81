// How long do the pages of the dashboard take in an account of a million links?
// npm run bench -- dashboard --seconds 10 --rounds 3
import { setPassword } from '../lib/dashboard-client.ts'
import { COMMON_TAG, describedMillion, RARE_TAG, TITLE } from '../lib/described-million.ts'
import { atMost, measureVariants, type Plan, value } from '../lib/figures.ts'
import { issueResetPath } from '../lib/hopcode-client.ts'
import { sendOwn } from '../lib/load-parts.ts'
import { MILLION, type MillionFolder, scatteredLinks } from '../lib/million.ts'
import type { Figures, Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { type MillionWorkspace, millionWorkspace } from '../lib/workspace.ts'

const PASSWORD = 'a password of the bench'
const ROWS = 50
const TARGET_MS = 100
const RETRY_MS = 60_000

const METRICS: Metric[] = [
  { key: 'p50', label: 'p50, ms', digits: 1, ratio: false },
  { key: 'p99', label: 'p99, ms', digits: 1, ratio: false },
  { key: 'max', label: 'the slowest, ms', digits: 1, ratio: false },
  { key: 'cpu', label: 'CPU of the service a page, ms', digits: 1, ratio: false },
  { key: 'first', label: 'the first one, ms', digits: 1, ratio: false },
  { key: 'requests', label: 'requests measured', digits: 0, ratio: false },
]

/** One kind of page. `says`: a text that it must contain. */
interface Variant {
  name: string
  path: string
  says: string
  /** Only the list, as htmx requests it. */
  isPart?: boolean
  /** Rows of the list that it must have. */
  rows?: number
}

const links = (query = '') => `/app/links${query}`
const found = (total: number) => `${total.toLocaleString('en')} of 1,000,000 links`
const COMMON = COMMON_TAG.tag

function variantsOf(folder: MillionFolder): Variant[] {
  const [link] = scatteredLinks(folder, 1)
  const rare = link?.code ?? ''
  const typing = (query: string, total: number, rows = Math.min(ROWS, total)) => ({
    path: links(query),
    says: total === 0 ? 'Nothing found' : found(total),
    isPart: true,
    rows,
  })
  const byHits = (query = '') => links(`?sort=hits${query}`)
  const title = encodeURIComponent(TITLE)
  return [
    { name: 'the first page', path: links(), says: '1,000,000 links' },
    { name: 'the page at 500,000', path: links('?page=10001'), says: 'Page 10,001 of 20,000' },
    { name: 'a common tag', ...typing(`?tag=${COMMON}`, COMMON_TAG.links) },
    { name: 'a rare tag', ...typing(`?tag=${RARE_TAG.tag}`, RARE_TAG.links) },
    { name: 'a search with one match', ...typing(`?q=${rare}`, 1) },
    { name: 'a search in titles', ...typing(`?q=${title}`, RARE_TAG.links) },
    { name: 'a search that all match', ...typing('?q=https', MILLION) },
    { name: 'a search of two characters', path: links('?q=qu'), says: 'of 1,000,000 links' },
    { name: 'a search without a match', ...typing('?q=qqxyzzy', 0) },
    {
      name: 'that search and the common tag',
      ...typing(`?q=https&tag=${COMMON}`, COMMON_TAG.links),
    },
    { name: 'most hits first', path: byHits(), says: 'Page 1 of 200' },
    { name: 'its page 10', path: byHits('&page=10'), says: 'Page 10 of 200' },
    { name: 'its page 200', path: byHits('&page=200'), says: 'Page 200 of 200' },
    {
      name: 'most hits first, a common tag',
      path: byHits(`&tag=${COMMON}`),
      says: 'Page 1 of 200',
    },
    {
      name: 'most hits first, a search that all match',
      path: byHits('&q=https'),
      says: 'Page 1 of 200',
    },
    {
      name: 'most hits first, search and tag',
      path: byHits(`&q=https&tag=${COMMON}`),
      says: 'Page 1 of 200',
    },
    ...['30d', '12m'].map((range) => ({
      name: `analytics, ${range}`,
      path: `/app/analytics?range=${range}`,
      says: 'Top links',
      rows: 0,
    })),
    { name: 'the page of a link', path: `/app/links/${rare}`, says: rare, rows: 0 },
  ]
}

export const dashboard: Scenario = {
  name: 'dashboard',
  question: 'How long do the pages of an account of a million links take?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say, {}, describedMillion)
  const { folder, launch, program } = workspace
  const variants = variantsOf(folder)
  const plan: Plan<Variant> = {
    variants,
    measure: (variant) => measureRound(variant, { launch, folder, program }, options.seconds),
    settings: { links: MILLION, rows: ROWS },
    metrics: METRICS,
    figures: Object.fromEntries(
      variants.map(({ name }) => [
        `p99 of ${name}, of a million links`,
        value(name, 'p99', ' ms', 1, atMost(TARGET_MS)),
      ]),
    ),
    notes: [
      `One request at a time, ${ROWS} rows a page, of one account with ${MILLION} links: ` +
        '100,000 have tags and 300,000 have hits.',
      'Searches and tags: only the part of the page with the list. Others: whole pages.',
      'The first one after a start: nothing of its list is counted or sorted yet.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(
  { path, says, isPart = false, rows = ROWS }: Variant,
  { launch, folder, program }: Pick<MillionWorkspace, 'launch' | 'folder' | 'program'>,
  seconds: number,
): Promise<RoundResult> {
  const resetPath = issueResetPath(program, folder.path)
  await using server = await startServer(launch)
  const headers = {
    Cookie: await setPassword(server.origin, resetPath, PASSWORD),
    ...(isPart && { 'HX-Request': 'true', 'HX-Target': 'list' }),
  }
  const verify = async (startedAt = performance.now()): Promise<number> => {
    const answer = await fetch(server.origin + path, { headers })
    // On a busy machine the first search after the start can exceed the deadline of the service.
    const mayRetry = performance.now() - startedAt < RETRY_MS
    if (answer.status === 503 && mayRetry) return await verify(startedAt)
    const text = await answer.text()
    const elapsedMs = performance.now() - startedAt
    const shown = text.split('<td class="pick">').length - 1
    if (answer.status !== 200 || shown !== rows || !text.includes(says)) {
      const main = /<main.*/s.exec(text)?.[0].replaceAll(/<[^>]*>|\s+/g, ' ') ?? text
      const found = `${answer.status} with ${shown} rows: ${main.slice(0, 1000)}`
      throw new Error(`${path} answered ${found}, not ${rows} rows and ${says}`)
    }
    return elapsedMs
  }
  const first = await verify()
  const before = server.cpuSeconds()
  const targets = [{ path, headers, status: 200 }]
  const { latency, answered } = await sendOwn(server, { targets, seconds, connections: 1 })
  const cpuSeconds = server.cpuSeconds() - before
  await verify()
  await server.stop()
  const [p50, p99, max] = [latency.p50, latency.p99, latency.max].map((micros) => micros / 1000)
  const cpu = (1000 * cpuSeconds) / answered
  return { figures: { p50, p99, max, cpu, first, requests: answered } as Figures }
}
