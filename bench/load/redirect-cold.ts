// What does a redirect cost when its link is not cached, with a million links in the database?
// npm run bench -- redirect-cold --seconds 3 --rounds 5
import { join } from 'node:path'
import { untilCounted } from '../lib/counted-hits.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import { type MillionFolder, scatteredLinks, writeTexts } from '../lib/million.ts'
import { followLink, HitCheck, TotalCheck } from '../lib/redirect-check.ts'
import { alternate, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Launch, startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { millionWorkspace } from '../lib/workspace.ts'

/** Small, so that the warm-up fills it: each miss then also evicts a link, as in a long run. */
const CACHE_MAX = 10_000
const WARM_CODES = 100
const SPREAD_CODES = 8000
/** Requested in turn: the far smaller cache never contains the next one. */
const COLD_CODES = 250_000
const SAMPLE = 100

const METRICS: Metric[] = [
  ...CLOSED_METRICS,
  { key: 'countedMicros', label: 'CPU µs per request, its hit counted', digits: 2, ratio: true },
  { key: 'catchUpSeconds', label: 'until all hits are counted, s', digits: 2, ratio: false },
]

interface Variant {
  name: string
  launch: Launch
  folder: MillionFolder
  links: readonly Link[]
  /** The codes of `links` for the generator. */
  textsFile: string
  /** Whether every request must miss the cache. */
  isCold: boolean
}

export const redirectCold: Scenario = {
  name: 'redirect-cold',
  question: 'What does a redirect cost when its link is not cached, of a million links?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say, { LINK_CACHE_MAX: String(CACHE_MAX) })
  const { folder, launch } = workspace
  const links = scatteredLinks(folder, COLD_CODES)
  const variant = (name: string, codes: number): Variant => {
    const own = links.slice(0, codes)
    const file = join(workspace.temporaryPath, `${name}-codes`)
    const textsFile = writeTexts(
      file,
      own.map(({ code }) => code),
    )
    return { name, launch, folder, links: own, textsFile, isCold: codes > CACHE_MAX }
  }
  const contenders = [
    variant('warm', WARM_CODES),
    variant('spread', SPREAD_CODES),
    variant('cold', COLD_CODES),
  ]
  const measure = (contender: Variant) => measureRound(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const ratio = (name: string, key: string) => medianRatio(variants, name, 'warm', key)
  const { seconds, rounds, warmUp, connections } = options
  return {
    baseline: 'warm',
    settings: { seconds, rounds, warmUp, connections, cache: CACHE_MAX, codes: COLD_CODES },
    metrics: METRICS,
    variants,
    summary: [
      {
        label: 'CPU per redirect, cold / warm',
        value: ratio('cold', 'countedMicros'),
        unit: '×',
        digits: 2,
        target: { sense: '≤', value: 1.5, stretch: 1.25 },
      },
    ],
    notes: [
      `warm: ${WARM_CODES} codes, all in the link cache of ${CACHE_MAX}.`,
      `spread: ${SPREAD_CODES} codes, all in the cache; its hits fall on as many rows.`,
      `cold: ${COLD_CODES} codes in turn, scattered over a million, so that each is a miss.`,
      'CPU µs per request, its hit counted: up to the moment when the database counts every hit.',
      'The file is in the page cache of the operating system. There is no limiter.',
      'total_redirects was compared with the redirects received, and the hit_count and Location ' +
        `of ${SAMPLE} codes.`,
    ],
  }
}

async function measureRound(
  { launch, folder, links, textsFile, isCold }: Variant,
  { connections, seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const total = new TotalCheck(client)
  const targets = [{ path: '/{number}', textsFile, status: 302 }]
  const load = { targets, connections }
  // From the end, so that no request of the load finds a code that this check has cached.
  for (const link of links.slice(-SAMPLE)) await followLink(server, link)
  const warming = await sendClosed(server, { ...load, seconds: Math.max(1, warmUp) })
  if (!isCold && warming.answered < links.length) throw new Error('the warm-up is too short')
  // The last request of each connection may have been answered unread.
  const firstNumber = warming.answered + connections + 1

  const inLoad = isCold ? links.slice(firstNumber + connections).slice(0, SAMPLE) : []
  const hits = new HitCheck(client, inLoad)
  await hits.begin()
  await untilCounted(client, folder.path)
  await total.begin()
  const cpuBefore = server.cpuSeconds()
  const { figures, requests } = await measureClosed(server, { ...load, firstNumber, seconds })
  const catchUpSeconds = await untilCounted(client, folder.path)
  const countedMicros = ((server.cpuSeconds() - cpuBefore) / requests) * 1e6
  await total.requireBetween(requests, requests + connections)
  const isOnce = firstNumber + requests < links.length && inLoad.length + connections < requests
  if (isOnce) await hits.requireExactly(inLoad.map(() => 1))
  for (const link of links.slice(0, SAMPLE)) await followLink(server, link)
  await server.stop()
  return { figures: { ...figures, countedMicros, catchUpSeconds } }
}
