// How long do pages and searches of an account of a million links take?
// npm run bench -- list --seconds 3 --rounds 5
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { atMost, main, measureVariants, type Plan, value } from '../lib/figures.ts'
import { accountHeaders, HopcodeClient } from '../lib/hopcode-client.ts'
import { sendOwn } from '../lib/load-parts.ts'
import { MILLION, type MillionFolder, scatteredLinks } from '../lib/million.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario, SummaryFigure } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { type MillionWorkspace, millionWorkspace } from '../lib/workspace.ts'

const LIMIT = 50
const WARMING = 3
const MIDDLE = 500_000
const DEEP = 900_000
const RARE = 'a search with one match'

const COMMON = 'a search with a million matches'

const METRICS: Metric[] = [
  { key: 'p50', label: 'p50, ms', digits: 2, ratio: false },
  { key: 'p99', label: 'p99, ms', digits: 2, ratio: false },
  { key: 'first', label: 'the first one, ms', digits: 1, ratio: false },
  { key: 'requests', label: 'requests measured', digits: 0, ratio: false },
]

const PAGE = atMost(10, 5)
const SEARCH = atMost(50, 20)

/** One kind of request. */
interface Variant {
  name: string
  offset: number
  search?: string
  /** A link is created before each request. */
  creates?: boolean
  target: SummaryFigure['target']
}

/** The expected response. */
interface Expected {
  total: number
  codes: string[]
}

export const list: Scenario = {
  name: 'list',
  question: 'How long do pages and searches of an account of a million links take?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say)
  const { folder } = workspace
  const contenders: Variant[] = [
    { name: 'the first page', offset: 0, target: PAGE },
    { name: `the page at ${MIDDLE}`, offset: MIDDLE, target: PAGE },
    { name: `the page at ${DEEP}`, offset: DEEP, target: PAGE },
    { name: RARE, offset: 0, search: rarePart(folder), target: SEARCH },
    { name: COMMON, offset: 0, search: 'https', target: SEARCH },
    { name: `its page at ${MIDDLE}`, offset: MIDDLE, search: 'https', target: SEARCH },
    {
      name: 'the same right after a creation',
      offset: 0,
      search: 'https',
      creates: true,
      target: SEARCH,
    },
    { name: 'a search of two characters', offset: 0, search: 'qu', target: SEARCH },
    { name: 'a search without a match', offset: 0, search: 'qqqxyzzyqqq', target: SEARCH },
  ]
  say('asking the database itself what the answers must be')
  const expected = new Map(contenders.map((variant) => [variant, expectedOf(folder, variant)]))
  const figures: Plan<Variant>['figures'] = {}
  for (const { name, target } of contenders) {
    const figure = value(name, 'p99', ' ms', 1, target)
    figures[`p99 of ${name}, of a million links`] = name === RARE ? main(figure) : figure
  }
  for (const name of [`the page at ${MIDDLE}`, COMMON, 'a search of two characters']) {
    figures[`the first request after a start: ${name}`] = value(name, 'first', ' ms', 1)
  }
  const plan: Plan<Variant> = {
    variants: contenders,
    measure: (variant) =>
      measureRound(variant, expected.get(variant) as Expected, workspace, options.seconds),
    settings: { links: MILLION, limit: LIMIT },
    metrics: METRICS,
    figures,
    notes: [
      `One request at a time, ${LIMIT} items a page, of one account with ${MILLION} links.`,
      'The first one: nothing of its list is counted yet; the others come after it.',
      'One match: a part of one link’s URL. A million: "https", which every link has.',
      'Where few requests were measured, p99 is the slowest.',
      'Total and codes were compared with a scan of the table, before and after every round.',
    ],
  }
  return await measureVariants(plan, options, say)
}

/** A part of exactly one URL. */
function rarePart(folder: MillionFolder): string {
  const article = scatteredLinks(folder, 100).find(({ url }) => url.endsWith('.html'))
  return article?.url.slice(-'abcd-00000.html'.length) ?? ''
}

/** Computed with a scan of the rows, without the search index. */
function expectedOf({ path }: MillionFolder, { offset, search = '' }: Variant): Expected {
  const db = openReadonly(databaseFile(path), { cacheKiB: 65_536 })
  try {
    const where = `instr(lower(code), ?1) > 0 OR instr(lower(url), ?1) > 0`
    const total = db
      .query<{ total: number }, [string]>(`SELECT count(*) AS total FROM links WHERE ${where}`)
      .get(search)
    const rows = db
      .query<{ code: string }, [string, number]>(
        `SELECT code FROM links WHERE ${where} ORDER BY id DESC LIMIT ${LIMIT} OFFSET ?2`,
      )
      .all(search, offset)
    return { total: total?.total ?? 0, codes: rows.map(({ code }) => code) }
  } finally {
    db.close()
  }
}

async function measureRound(
  { offset, search, creates = false }: Variant,
  expected: Expected,
  { launch, folder, renew }: MillionWorkspace,
  seconds: number,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const query = `limit=${LIMIT}&offset=${offset}${search === undefined ? '' : `&search=${search}`}`
  const verify = async ({ total, codes }: Expected) => {
    const startedAt = performance.now()
    const found = await client.list(query)
    const elapsedMs = performance.now() - startedAt
    const foundCodes = found.items.map(({ code }) => code)
    if (found.total === total && Bun.deepEquals(foundCodes, codes)) return elapsedMs
    const said = `${found.total} in all, from ${foundCodes[0]} on`
    throw new Error(`?${query} gave ${said}, not ${JSON.stringify({ total, codes })}`)
  }
  const first = await verify(expected)
  for (let n = 1; n < WARMING; n++) await verify(expected)
  if (creates) {
    const figures = await measureAfterCreations(client, expected, { verify, seconds })
    await server.stop()
    renew()
    return { figures: { ...figures, first } }
  }
  const headers = accountHeaders(folder.apiKey)
  const targets = [{ path: `/api/list?${query}`, headers, status: 200 }]
  const { latency, answered } = await sendOwn(server, { targets, seconds, connections: 1 })
  await verify(expected)
  await server.stop()
  const { p50, p99 } = latency
  return { figures: { p50: p50 / 1000, p99: p99 / 1000, first, requests: answered } }
}

/** Each response must contain the link created just before it, and count one match more. */
async function measureAfterCreations(
  client: HopcodeClient,
  { total, codes }: Expected,
  options: { verify: (expected: Expected) => Promise<number>; seconds: number },
): Promise<{ p50: number; p99: number; requests: number }> {
  const created: string[] = []
  const elapsedMs: number[] = []
  const endsAt = performance.now() + options.seconds * 1000
  while (performance.now() < endsAt) {
    const url = `https://created.example/${crypto.randomUUID()}`
    for (const link of await client.createLinks([url])) created.unshift(link.code)
    const newest = [...created, ...codes].slice(0, LIMIT)
    elapsedMs.push(await options.verify({ total: total + created.length, codes: newest }))
  }
  elapsedMs.sort((a, b) => a - b)
  const percentile = (percent: number) =>
    elapsedMs[Math.min(elapsedMs.length - 1, Math.floor((elapsedMs.length * percent) / 100))] ?? NaN
  return { p50: percentile(50), p99: percentile(99), requests: elapsedMs.length }
}
