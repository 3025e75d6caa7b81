// How long do pages and searches of an account of a million links take?
// npm run bench -- list --seconds 3 --rounds 5
import { join } from 'node:path'
import { openDataFolder } from '../../src/data-folder.ts'
import { ownClosedLoop } from '../lib/closed-loop.ts'
import { accountHeaders, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import {
  copyMillion,
  MILLION,
  type MillionFolder,
  millionFolder,
  scatteredLinks,
} from '../lib/million.ts'
import { alternate, medianOf, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Bar, LoadOptions, Metric, Scenario, ScenarioReport } from '../lib/scenario.ts'
import { HOSTNAME, type Launch, startServer } from '../lib/server.ts'
import { hopcode, hopcodeProgram, WITHOUT_LIMITS } from '../lib/variants.ts'

const LIMIT = 50
const WARMING = 3
const DEEP = 900_000
const RARE = 'a search with one match'

const METRICS: Metric[] = [
  { key: 'p50', label: 'p50, ms', digits: 2, ratio: false },
  { key: 'p99', label: 'p99, ms', digits: 2, ratio: false },
  { key: 'requests', label: 'requests measured', digits: 0, ratio: false },
]

const PAGE = { sense: '≤', bar: 10, stretch: 5 } as const
const SEARCH = { sense: '≤', bar: 50, stretch: 20 } as const

/** One kind of request. */
interface Variant {
  name: string
  offset: number
  search?: string
  demand: Bar['demand'] & object
}

/** What the answer must say. */
interface Expected {
  total: number
  codes: string[]
}

export const list: Scenario = {
  name: 'list',
  question: 'How long do pages and searches of an account of a million links take?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<ScenarioReport> {
  using temporary = new TemporaryFolder()
  const program = await hopcodeProgram({ fromSource: options.source })
  const folder = copyMillion(millionFolder(say), join(temporary.path, 'data'))
  const launch = hopcode(program, folder.path, WITHOUT_LIMITS)
  const contenders: Variant[] = [
    { name: 'the first page', offset: 0, demand: PAGE },
    { name: `the page at ${DEEP}`, offset: DEEP, demand: PAGE },
    { name: RARE, offset: 0, search: rarePart(folder), demand: SEARCH },
    { name: 'a search with a million matches', offset: 0, search: 'https', demand: SEARCH },
    { name: 'a search without a match', offset: 0, search: 'qqqxyzzyqqq', demand: SEARCH },
  ]
  say('asking the database itself what the answers must be')
  const expected = new Map(contenders.map((variant) => [variant, expectedOf(folder, variant)]))
  const measure = (variant: Variant) =>
    measureRound(variant, expected.get(variant) ?? { total: 0, codes: [] }, {
      ...{ launch, folder, seconds: options.seconds },
    })
  const variants = await alternate(contenders, options.rounds, measure, say)
  return {
    scenario: list.name,
    question: list.question,
    settings: { seconds: options.seconds, rounds: options.rounds, links: MILLION, limit: LIMIT },
    metrics: METRICS,
    variants,
    bars: contenders.map(({ name, demand }) => ({
      label: `p99 of ${name}, of a million links`,
      value: medianOf(variants, name, 'p99'),
      ...{ unit: ' ms', digits: 1, isMain: name === RARE, demand },
    })),
    notes: [
      `One request at a time, ${LIMIT} items a page, of one account with ${MILLION} links.`,
      'One match: a part of one link’s URL. A million: "https", which every link has.',
      'Where few requests were measured, p99 is the slowest.',
      'Total and codes were compared with a scan of the table, before and after every round.',
    ],
  }
}

/** A part that only one URL has. */
function rarePart(folder: MillionFolder): string {
  const article = scatteredLinks(folder, 100).find(({ url }) => url.endsWith('.html'))
  return article?.url.slice(-'abcd-00000.html'.length) ?? ''
}

/** By a scan of the rows, without the search index. */
function expectedOf({ path }: MillionFolder, { offset, search = '' }: Variant): Expected {
  const { db } = openDataFolder(path)
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
  { offset, search }: Variant,
  expected: Expected,
  { launch, folder, seconds }: { launch: Launch; folder: MillionFolder; seconds: number },
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const query = `limit=${LIMIT}&offset=${offset}${search === undefined ? '' : `&search=${search}`}`
  const verify = async () => {
    const { total, items } = await client.list(query)
    const codes = items.map(({ code }) => code)
    if (total === expected.total && Bun.deepEquals(codes, expected.codes)) return
    throw new Error(
      `?${query} gave ${total} in all, from ${codes[0]} on, not ${JSON.stringify(expected)}`,
    )
  }
  for (let n = 0; n < WARMING; n++) await verify()
  const result = await ownClosedLoop({
    ...{ hostname: HOSTNAME, port: server.port, seconds, connections: 1 },
    targets: [{ path: `/api/list?${query}`, headers: accountHeaders(folder.apiKey), status: 200 }],
  })
  if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests failed`)
  await verify()
  await server.stop()
  const { p50, p99, requests } = result
  return { figures: { p50: p50 / 1000, p99: p99 / 1000, requests } }
}
