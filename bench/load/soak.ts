// How much memory does the service use after millions of redirects of a million codes?
// npm run bench -- soak --redirects 50
import { join } from 'node:path'
import { uncountedHits, untilCounted } from '../lib/counted-hits.ts'
import { atMost, main, measureVariants, type Plan, value } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { sendClosed } from '../lib/load-parts.ts'
import { MILLION, scatteredLinks, writeTexts } from '../lib/million.ts'
import { followLink, requireBetween } from '../lib/redirect-check.ts'
import { median, type Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { millionWorkspace } from '../lib/workspace.ts'

/** Length of the short form. */
const SHORT_SECONDS = 40
const CHUNK_SECONDS = 10
const SAMPLE_EVERY_MS = 250
/** Redirects of one code in a row: the first misses the link cache, the others hit it. */
const FOLLOWED_IN_A_ROW = 10
/** Garbage collections change memory: the value at a point is the median over these redirects. */
const WINDOW = 2_000_000
/** Growth is the difference of the medians over two ranges of this many redirects. */
const RANGE = 10_000_000
/** Growth has a target only after this many redirects. */
const JUDGED_FROM = 50_000_000
const CODES_CHECKED = 100

const METRICS: Metric[] = [
  { key: 'millions', label: 'redirects, millions', digits: 2, ratio: false },
  { key: 'perSecond', label: 'redirects/s', digits: 0, ratio: false },
  { key: 'atStart', label: 'memory before, MiB', digits: 0, ratio: false },
  { key: 'atEnd', label: 'memory at the end, MiB', digits: 1, ratio: false },
  { key: 'highest', label: 'memory at its highest, MiB', digits: 0, ratio: false },
  { key: 'growth', label: 'growth over the last 10 million, MiB', digits: 1, ratio: false },
  { key: 'uncounted', label: 'hits only in the journal at the end', digits: 0, ratio: false },
  { key: 'catchUpSeconds', label: 'until all are counted, s', digits: 1, ratio: false },
]

/** Resident memory after a number of redirects. */
interface Sample {
  redirects: number
  mebibytes: number
}

export const soak: Scenario = {
  name: 'soak',
  question: 'How much memory does the service use after millions of redirects?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say)
  const { folder, launch } = workspace
  const links = scatteredLinks(folder, MILLION)
  const codes = links.map(({ code }) => code)
  const inARow = codes.flatMap((code) => Array<string>(FOLLOWED_IN_A_ROW).fill(code))
  const textsFile = writeTexts(join(workspace.temporaryPath, 'codes'), inARow)
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const sampled = links.slice(0, CODES_CHECKED)
  for (const link of sampled) await followLink(server, link)
  const atStart = server.memory().resident

  const totalBefore = await client.totalRedirects()
  const soaked = await soakIn(server, textsFile, options, say)
  const { redirects, requests, unread, seconds, samples } = soaked
  const uncounted = await uncountedHits(client, folder.path)
  const rise = (await client.totalRedirects()) - totalBefore
  requireBetween(rise, redirects, redirects + unread)
  for (const link of sampled) await followLink(server, link)
  await requireSpread(client, sampled, redirects, unread)
  const catchUpSeconds = await untilCounted(client, folder.path)
  await server.stop()

  const atEnd = memoryAt(samples, redirects, WINDOW)
  const figures = {
    millions: redirects / 1e6,
    perSecond: requests / seconds,
    atStart,
    atEnd,
    highest: Math.max(...samples.map(({ mebibytes }) => mebibytes)),
    growth:
      redirects < JUDGED_FROM
        ? Number.NaN
        : memoryAt(samples, redirects, RANGE) - memoryAt(samples, redirects - RANGE, RANGE),
    uncounted,
    catchUpSeconds,
  }
  const name = 'hopcode'
  const plan: Plan<{ name: string }> = {
    variants: [{ name }],
    measure: async () => ({ figures }),
    settings: { redirects, codes: MILLION },
    metrics: METRICS,
    figures: {
      [`memory after ${(redirects / 1e6).toFixed(1)} million redirects of a million codes`]: main(
        value(name, 'atEnd', ' MiB', 0, atMost(250)),
      ),
      'hits only in the journal at the end': value(name, 'uncounted', ''),
      'growth over the last 10 million of 50 and more': value(name, 'growth', ' MiB', 1, atMost(1)),
    },
    notes: [
      `The codes are asked for in turn, each ${FOLLOWED_IN_A_ROW} times in a row: the first of ` +
        'them finds it out of the link cache.',
      'Memory is all that is resident, mapped files too: the median over the 2 million redirects ' +
        'before a point, or over what there is. Growth compares the medians over the last 10 ' +
        'million redirects and the 10 million before.',
      `total_redirects was compared with the redirects received, and ${CODES_CHECKED} hit_counts.`,
    ],
  }
  return await measureVariants(plan, { ...options, rounds: 1 }, () => {})
}

/** Sends the redirects in chunks and samples the memory meanwhile. */
async function soakIn(
  server: Server,
  textsFile: string,
  { redirects: millions, connections }: LoadOptions,
  say: Progress,
) {
  const targets = [{ path: '/{number}', textsFile, status: 302 }]
  const samples: Sample[] = []
  const startedAt = performance.now()
  const secondsSoFar = () => (performance.now() - startedAt) / 1000
  const isDone = (redirects: number) =>
    millions === undefined ? secondsSoFar() >= SHORT_SECONDS : redirects >= millions * 1e6
  let redirects = 0
  let chunks = 0
  let chunkAt = startedAt
  let perSecond = 0
  const sampler = setInterval(() => {
    const since = (performance.now() - chunkAt) / 1000
    const mebibytes = server.memory().resident
    samples.push({ redirects: redirects + perSecond * since, mebibytes })
  }, SAMPLE_EVERY_MS)
  try {
    while (!isDone(redirects)) {
      chunkAt = performance.now()
      const load = { targets, connections, firstNumber: redirects, seconds: CHUNK_SECONDS }
      const result = await sendClosed(server, load)
      redirects += result.answered
      perSecond = result.answered / result.seconds
      chunks += 1
      if (chunks % 6 === 0) {
        const mebibytes = server.memory().resident.toFixed(0)
        say(`${(redirects / 1e6).toFixed(1)} million redirects, ${mebibytes} MiB`)
      }
    }
  } finally {
    clearInterval(sampler)
  }
  const seconds = secondsSoFar()
  return { redirects, requests: redirects, unread: chunks * connections, seconds, samples }
}

/** The median over `length` redirects before a point; NaN if the run began later. */
function memoryAt(samples: readonly Sample[], redirects: number, length: number): number {
  const window = samples.filter(
    (sample) => sample.redirects <= redirects && sample.redirects > redirects - length,
  )
  return median(window.map(({ mebibytes }) => mebibytes))
}

/** Throws unless each code was followed as often as expected: the generator uses them in order. */
async function requireSpread(
  client: HopcodeClient,
  links: readonly Link[],
  redirects: number,
  unread: number,
): Promise<void> {
  const turns = Math.floor(redirects / MILLION / FOLLOWED_IN_A_ROW) * FOLLOWED_IN_A_ROW
  // Two are requests of this check.
  const [least, most] = [turns + 2, turns + FOLLOWED_IN_A_ROW + 2 + unread]
  const counts = await client.hitCounts(links.map(({ code }) => code))
  const odd = counts.find((count) => count < least || count > most)
  if (odd !== undefined) throw new Error(`a hit_count is ${odd}, not from ${least} to ${most}`)
}
