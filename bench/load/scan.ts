// What does a request for an unknown code cost, compared with a redirect of a cached link?
// npm run bench -- scan --seconds 3 --rounds 5
import { join } from 'node:path'
import { openDataFolder } from '../../src/data-folder.ts'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { newCode } from '../../src/lib/code.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import { type MillionFolder, scatteredLinks, writeTexts } from '../lib/million.ts'
import { seededBytes, seededRandom } from '../lib/realistic-urls.ts'
import { followLink, TotalCheck } from '../lib/redirect-check.ts'
import type { Target } from '../lib/request.ts'
import { alternate, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { millionWorkspace } from '../lib/workspace.ts'

/** Small, so that no code of the scan is still cached when it is requested again. */
const CACHE_MAX = 10_000
const WARM_CODES = 100
const SCANNED_CODES = 250_000
const SEED = 40_404
/** Wait after the first unknown code, when the service reads the codes in use for about 2 s. */
const CODES_READ_MS = 6000

interface Variant {
  name: string
  target: Target
  /** Unknown codes: those of `target` and more; empty if its codes exist. */
  unknown: readonly string[]
  /** Whether the same few codes are requested repeatedly. */
  isRepeated: boolean
}

interface Setup {
  launch: Launch
  folder: MillionFolder
  /** Existing links. */
  links: readonly Link[]
  /** The code of another link, which is not followed. */
  unmet: string | undefined
}

export const scan: Scenario = {
  name: 'scan',
  question: 'What does a request for an unknown code cost, compared with a redirect?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say, { LINK_CACHE_MAX: String(CACHE_MAX) })
  const { folder, launch } = workspace
  const [unmet, ...links] = scatteredLinks(folder, WARM_CODES + 1)
  const setup = { launch, folder, links, unmet: unmet?.code }
  const unknown = unknownCodes(folder, SCANNED_CODES)
  const target = (name: string, codes: readonly string[], status: number): Target => ({
    path: '/{number}',
    textsFile: writeTexts(join(workspace.temporaryPath, name), codes),
    status,
  })
  const known = links.map(({ code }) => code)
  const few = unknown.slice(0, WARM_CODES)
  const contenders: Variant[] = [
    { name: 'warm', target: target('warm', known, 302), unknown: [], isRepeated: false },
    { name: 'scan', target: target('scan', unknown, 404), unknown, isRepeated: false },
    { name: 'repeated', target: target('repeated', few, 404), unknown, isRepeated: true },
  ]
  const measure = (variant: Variant) => measureRound(variant, setup, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const ratio = (name: string) => medianRatio(variants, name, 'warm', 'cpuMicros')
  const { seconds, rounds, warmUp, connections } = options
  return {
    baseline: 'warm',
    settings: { seconds, rounds, warmUp, connections, cache: CACHE_MAX, codes: SCANNED_CODES },
    metrics: CLOSED_METRICS,
    variants,
    summary: [
      {
        label: 'CPU per request, new unknown codes / warm redirects',
        value: ratio('scan'),
        unit: '×',
        digits: 2,
        target: { sense: '≤', value: 1.6 },
      },
      {
        label: 'CPU per request, repeated unknown codes / warm redirects',
        value: ratio('repeated'),
        unit: '×',
        digits: 2,
        target: { sense: '≤', value: 1.6 },
      },
    ],
    notes: [
      `warm: redirects of ${WARM_CODES} codes; as everywhere here, of a million in the database.`,
      `scan: ${SCANNED_CODES} unknown codes in turn; the service caches the last ${CACHE_MAX} ` +
        'that it looked up, so none of them is cached. It has read the codes in use before.',
      `repeated: ${WARM_CODES} of them repeatedly. During the timed part the table of links was ` +
        'renamed, so that a lookup would be a 500: every response was a 404, and that of a link ' +
        'that the service had never seen was a 500.',
      'Every status was judged. There is no limiter.',
    ],
  }
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
  { target, unknown, isRepeated }: Variant,
  { launch, folder, links, unmet }: Setup,
  { connections, seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const total = new TotalCheck(new HopcodeClient(server.origin, folder.apiKey))
  for (const link of links) await followLink(server, link)
  if (unknown.length > 0) {
    await requireAnswer(server, unknown[0], 404)
    await Bun.sleep(CODES_READ_MS)
  }
  const load = { targets: [target], connections }
  const warming = await sendClosed(server, { ...load, seconds: Math.max(1, warmUp) })
  const firstNumber = warming.answered + connections + 1

  await total.begin()
  const away = isRepeated ? hideLinks(folder) : undefined
  let part: Awaited<ReturnType<typeof measureClosed>>
  try {
    part = await measureClosed(server, { ...load, firstNumber, seconds })
    if (away) await requireAnswer(server, unmet, 500)
  } finally {
    away?.[Symbol.dispose]()
  }
  const redirects = target.status === 302 ? part.requests : 0
  await total.requireBetween(redirects, redirects && redirects + connections)
  for (const link of links) await followLink(server, link)
  await server.stop()
  return { figures: part.figures }
}

async function requireAnswer(server: Server, code: string | undefined, status: number) {
  const answer = await fetch(`${server.origin}/${code}`, { redirect: 'manual' })
  const text = await answer.text()
  if (answer.status === status) return
  throw new Error(`/${code} answered ${answer.status}, not ${status}: ${text}`)
}

/** Renames the table of links while the service runs, until disposal. */
function hideLinks({ path }: MillionFolder): Disposable {
  const { db } = openDataFolder(path)
  db.run('ALTER TABLE links RENAME TO links_gone')
  return {
    [Symbol.dispose]() {
      db.run('ALTER TABLE links_gone RENAME TO links')
      db.close()
    },
  }
}
