// What changes with the number of links of one account?
// npm run bench -- growth --millions 0.1,1,10 --rounds 3
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile } from '../../src/db/open.ts'
import { BULK_ITEMS, bulkTargets } from '../lib/bulk-load.ts'
import { untilCounted } from '../lib/counted-hits.ts'
import { measureVariants, type Plan } from '../lib/figures.ts'
import { accountHeaders, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { measureClosed, sendClosed, sendOwn } from '../lib/load-parts.ts'
import {
  copyMillion,
  type MillionFolder,
  millionFolder,
  scatteredLinks,
  writeTexts,
} from '../lib/million.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Server, spawnServer } from '../lib/server.ts'
import { hopcode, hopcodeProgram, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { firstRedirect } from './start.ts'

const CACHE_MAX = 10_000
const WARM_CODES = 5000
/** Requested in turn: the far smaller cache never contains the next one. */
const COLD_CODES = 100_000
const BULK_CONNECTIONS = 2
const BULKS_PER_SECOND = 100
const SETTLING_MS = 1000
/** The end of the URL of an article, which no other URL contains. */
const RARE_LENGTH = 'abcd-00000.html'.length

const METRICS: Metric[] = [
  {
    key: 'bytes',
    label: 'bytes of the database per link, its search index included',
    digits: 0,
    ratio: false,
  },
  { key: 'firstMs', label: 'start to first redirect, ms', digits: 0, ratio: false },
  { key: 'memory', label: 'memory after the start, MiB', digits: 0, ratio: false },
  { key: 'warm', label: 'redirects/s, warm', digits: 0, ratio: false },
  { key: 'warmMicros', label: '… CPU µs per redirect, its hit counted', digits: 1, ratio: false },
  { key: 'cold', label: 'redirects/s, cold', digits: 0, ratio: false },
  { key: 'coldMicros', label: '… CPU µs per redirect, its hit counted', digits: 1, ratio: false },
  { key: 'listP99', label: 'a page at the middle of the list: p99, ms', digits: 1, ratio: false },
  { key: 'searchP99', label: 'a search with one match: p99, ms', digits: 1, ratio: false },
  { key: 'linksPerSecond', label: 'durable links/s in bulks of 1,000', digits: 0, ratio: false },
]

interface Step {
  name: string
  links: number
  folder: MillionFolder
  codes: readonly Link[]
  /** Counts the bulk loads, whose URLs must differ. */
  series: number
}

export const growth: Scenario = {
  name: 'growth',
  question: 'What changes with the number of links of one account?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  using temporary = new TemporaryFolder()
  const steps = options.millions.map((millions): Step => {
    const links = Math.round(millions * 1_000_000)
    const original = millionFolder(say, links)
    const folder = copyMillion(original, join(temporary.path, String(links)))
    const codes = scatteredLinks(folder, Math.min(links, COLD_CODES), links)
    return { name: `${links.toLocaleString('en')} links`, links, folder, codes, series: 0 }
  })
  const plan: Plan<Step> = {
    variants: steps,
    measure: (step) => measureRound(step, program, options),
    settings: { cache: CACHE_MAX, coldCodes: COLD_CODES },
    metrics: METRICS,
    figures: {},
    notes: [
      `warm: ${WARM_CODES} codes; cold: up to ${COLD_CODES} in turn, with a cache of ${CACHE_MAX}.`,
      'List and search: one request at a time, 50 links a page.',
      'The bulks come last; each round leaves their links to the next.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(
  step: Step,
  program: string[],
  { connections, seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  const { folder, codes, links } = step
  const bytes = statSync(databaseFile(folder.path)).size / links
  const settings = { ...WITHOUT_LIMITS, LINK_CACHE_MAX: String(CACHE_MAX) }
  await using server = spawnServer(hopcode(program, folder.path, settings))
  const firstMs = await firstRedirect(server, codes[0] as Link)
  await server.untilReady()
  await Bun.sleep(SETTLING_MS)
  const memory = server.memory().resident
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const settle = async () => void (await untilCounted(client, folder.path))
  const follow = async (count: number) => {
    const file = join(folder.path, `codes-${count}`)
    const textsFile = writeTexts(
      file,
      codes.slice(0, count).map(({ code }) => code),
    )
    const load = { targets: [{ path: '/{number}', textsFile, status: 302 }], connections }
    await sendClosed(server, { ...load, seconds: Math.max(1, warmUp) })
    await settle()
    return (await measureClosed(server, { ...load, seconds }, settle)).figures
  }
  const warm = await follow(WARM_CODES)
  const cold = await follow(codes.length)
  const rare = codes.find(({ url }) => url.endsWith('.html'))?.url.slice(-RARE_LENGTH) ?? ''
  const listP99 = await pageP99(server, folder, `offset=${links / 2}`, seconds)
  const searchP99 = await pageP99(server, folder, `search=${rare}`, seconds)
  step.series += 1
  const targets = bulkTargets(folder.apiKey, step.series, Math.ceil(BULKS_PER_SECOND * seconds))
  const bulks = await sendOwn(server, { targets, connections: BULK_CONNECTIONS, seconds })
  await server.stop()
  const figures = {
    bytes,
    firstMs,
    memory,
    warm: warm.requestsPerSecond,
    warmMicros: warm.cpuMicros,
    cold: cold.requestsPerSecond,
    coldMicros: cold.cpuMicros,
    listP99,
    searchP99,
    linksPerSecond: (bulks.answered / bulks.seconds) * BULK_ITEMS,
  }
  return { figures }
}

/** Milliseconds. */
async function pageP99(
  server: Server,
  { apiKey }: MillionFolder,
  query: string,
  seconds: number,
): Promise<number> {
  const path = `/api/list?limit=50&${query}`
  const target: Target = { path, headers: accountHeaders(apiKey), status: 200 }
  const load = { targets: [target], connections: 1 }
  await sendOwn(server, { ...load, seconds: 0.2 })
  return (await sendOwn(server, { ...load, seconds })).latency.p99 / 1000
}
