// What does a request cost whose code is not in the cache, with a million links in the database?
// npm run bench -- redirect-cold --seconds 3 --rounds 5
import { join } from 'node:path'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { newCode } from '../../src/lib/code.ts'
import { untilCounted } from '../lib/counted-hits.ts'
import { atMost, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import { type MillionFolder, scatteredLinks, writeTexts } from '../lib/million.ts'
import { writerSecondsOf } from '../lib/process-stats.ts'
import { seededBytes, seededRandom } from '../lib/realistic-urls.ts'
import { followLink, HitCheck, requireBetween } from '../lib/redirect-check.ts'
import { CODES_READ_MS } from '../lib/redirect-round.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { type MillionWorkspace, millionWorkspace } from '../lib/workspace.ts'

/** Small, so that the warm-up fills it: each miss then also evicts a link, as in a long run. */
const CACHE_MAX = 10_000
const WARM_CODES = 5000
/** Requested in turn: the far smaller cache never contains the next one. */
const COLD_CODES = 250_000
const SAMPLE = 100
const SEED = 40_404

const METRICS: Metric[] = [
  ...CLOSED_METRICS,
  { key: 'countedMicros', label: 'CPU µs per request, its hit counted', digits: 2, ratio: true },
  { key: 'writerMicros', label: 'writer: CPU µs per hit', digits: 2, ratio: true },
  { key: 'catchUpSeconds', label: 'until all hits are counted, s', digits: 2, ratio: false },
]

interface Variant {
  name: string
  codes: readonly string[]
  /** Those of `codes`; empty if the codes are unknown. */
  links: readonly Link[]
}

export const redirectCold: Scenario = {
  name: 'redirect-cold',
  question: 'What does a request cost whose code is not cached, or unknown, of a million links?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say, { LINK_CACHE_MAX: String(CACHE_MAX) })
  const links = scatteredLinks(workspace.folder, COLD_CODES)
  const unknown = unknownCodes(workspace.folder, COLD_CODES)
  const known = (name: string, count: number): Variant => {
    const own = links.slice(0, count)
    return { name, links: own, codes: own.map(({ code }) => code) }
  }
  const plan: Plan<Variant> = {
    variants: [
      known('warm', WARM_CODES),
      known('cold', COLD_CODES),
      { name: 'unknown', links: [], codes: unknown },
      { name: 'repeated', links: [], codes: unknown.slice(0, WARM_CODES) },
    ],
    measure: (variant) => measureRound(variant, workspace, options),
    baseline: 'warm',
    settings: { cache: CACHE_MAX, codes: COLD_CODES },
    metrics: METRICS,
    figures: {
      'CPU per redirect, cold / warm': ratio('cold', 'warm', 'countedMicros', atMost(2.2)),
      'CPU per request, new unknown codes / warm redirects': ratio(
        'unknown',
        'warm',
        'cpuMicros',
        atMost(1.6),
      ),
      'CPU per request, repeated unknown codes / warm redirects': ratio(
        'repeated',
        'warm',
        'cpuMicros',
        atMost(1.6),
      ),
    },
    notes: [
      `warm: ${WARM_CODES} codes, all in the link cache of ${CACHE_MAX}.`,
      `cold: ${COLD_CODES} codes in turn, scattered over a million, so that each is a miss.`,
      `unknown: ${COLD_CODES} codes of no link, in turn; repeated: ${WARM_CODES} of them. The ` +
        'service has read the codes in use before.',
      'CPU µs per request, its hit counted: up to the moment when the database counts every hit.',
      'The file is in the page cache of the operating system. There is no limiter.',
      'total_redirects was compared with the redirects received, and the hit_count and Location ' +
        `of ${SAMPLE} codes.`,
    ],
  }
  return await measureVariants(plan, options, say)
}

/** Codes as the service generates them that no link of the folder has; always the same ones. */
function unknownCodes({ path }: MillionFolder, count: number): string[] {
  const random = seededBytes(seededRandom(SEED))
  const db = openReadonly(databaseFile(path), { cacheKiB: 65_536 })
  try {
    const find = db.prepare<{ id: number }, [string]>('SELECT id FROM links WHERE code = ?')
    const codes = new Set<string>()
    while (codes.size < count) {
      const code = newCode(random)
      if (!find.get(code)) codes.add(code)
    }
    return [...codes]
  } finally {
    db.close()
  }
}

async function measureRound(
  { name, codes, links }: Variant,
  { launch, folder, temporaryPath }: MillionWorkspace,
  { connections, seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const isKnown = links.length > 0
  const isCold = codes.length > CACHE_MAX
  const textsFile = writeTexts(join(temporaryPath, `${name}-codes`), codes)
  const targets = [{ path: '/{number}', textsFile, status: isKnown ? 302 : 404 }]
  const load = { targets, connections }
  // From the end, so that no request of the load finds a code that this check has cached.
  for (const link of links.slice(-SAMPLE)) await followLink(server, link)
  if (!isKnown) {
    const { status } = await fetch(`${server.origin}/${codes.at(-1)}`)
    if (status !== 404) throw new Error(`/${codes.at(-1)} answered ${status}`)
    await Bun.sleep(CODES_READ_MS)
  }
  let firstNumber = 0
  // As long as it takes on a busy machine to fill the cache.
  while (firstNumber < Math.min(codes.length, CACHE_MAX) + connections) {
    const warming = { ...load, firstNumber, seconds: Math.max(1, warmUp) }
    // The last request of each connection may have been answered unread.
    firstNumber += (await sendClosed(server, warming)).answered + connections + 1
  }

  const inLoad = isCold ? links.slice(firstNumber + connections).slice(0, SAMPLE) : []
  const hits = new HitCheck(client, inLoad)
  await hits.begin()
  await untilCounted(client, folder.path)
  const totalBefore = await client.totalRedirects()
  const cpuBefore = server.cpuSeconds()
  const writerBefore = writerSecondsOf(server.pid)
  const { figures, requests } = await measureClosed(server, { ...load, firstNumber, seconds })
  const catchUpSeconds = await untilCounted(client, folder.path)
  const countedMicros = ((server.cpuSeconds() - cpuBefore) / requests) * 1e6
  const writerMicros = ((writerSecondsOf(server.pid) - writerBefore) / requests) * 1e6
  const redirects = isKnown ? requests : 0
  const rise = (await client.totalRedirects()) - totalBefore
  requireBetween(rise, redirects, redirects && redirects + connections)
  const isOnce = firstNumber + requests < links.length && inLoad.length + connections < requests
  if (isOnce) await hits.requireExactly(inLoad.map(() => 1))
  for (const link of links.slice(0, SAMPLE)) await followLink(server, link)
  await server.stop()
  return {
    figures: { ...figures, ...(isKnown && { countedMicros, writerMicros, catchUpSeconds }) },
  }
}
