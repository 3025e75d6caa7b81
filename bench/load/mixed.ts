// What is the latency of redirects during bulks, large images, searches, guesses and a backup?
// npm run bench -- mixed --seconds 10 --rounds 5
import { join } from 'node:path'
import { BULK_ITEMS, bulkTargets } from '../lib/bulk-load.ts'
import { atMost, main, measureVariants, milliseconds, type Plan, ratio } from '../lib/figures.ts'
import { GUESS_SETTINGS, GUESSERS, guessTargets } from '../lib/guesses.ts'
import { accountHeaders, HopcodeClient } from '../lib/hopcode-client.ts'
import { tieToThisProcess } from '../lib/leftovers.ts'
import { generateLoad } from '../lib/load.ts'
import {
  measureOpen,
  measurePeak,
  OPEN_METRICS,
  SLEEP_MS,
  sendClosed,
  sendOwn,
} from '../lib/load-parts.ts'
import { scatteredLinks } from '../lib/million.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { type MillionWorkspace, millionWorkspace } from '../lib/workspace.ts'

const CODES = 200
const SHARE_OF_PEAK = 0.6
/** Other requests per second. */
const BULKS = 2
const IMAGES = 20
const SEARCHES = 10
const IMAGE_SIZE = 2048
const BACKGROUND_CONNECTIONS = 4
/** The other work starts this much earlier than the redirects, so that its code is compiled. */
const WARM_SECONDS = 3
/** The backup starts this much earlier than the redirects; all other work ends this much later. */
const LEAD_SECONDS = 1

interface Setup extends MillionWorkspace {
  links: readonly Link[]
  /** The code of a link with a password. */
  locked: string
}

export const mixed: Scenario = {
  name: 'mixed',
  question:
    'What is the latency of redirects during bulks, images, searches, guesses and a backup?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say, GUESS_SETTINGS)
  const links = scatteredLinks(workspace.folder, CODES + 1)
  const locked = links.pop()?.code ?? ''
  const setup: Setup = { ...workspace, links, locked }
  let series = 0
  const peakAlone = await findPeak(setup, options, undefined)
  const peak = await findPeak(setup, options, ++series)
  const ratePerSecond = options.ratePerSecond ?? Math.floor(peak * SHARE_OF_PEAK)
  say(`peak: ${peakAlone} redirects/s alone, ${peak} mixed; from here on ${ratePerSecond}`)
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'alone' }, { name: 'mixed' }],
    measure: ({ name }) =>
      measureRound(
        setup,
        { ...options, rate: ratePerSecond },
        name === 'mixed' ? ++series : undefined,
      ),
    baseline: 'alone',
    settings: { ratePerSecond, peak, peakAlone },
    metrics: [
      ...OPEN_METRICS,
      { key: 'cpuPercent', label: 'CPU of the service, % of a core', digits: 0, ratio: true },
      { key: 'bulks', label: 'bulks answered/s', digits: 1, ratio: false },
      { key: 'images', label: 'images answered/s', digits: 1, ratio: false },
      { key: 'searches', label: 'searches answered/s', digits: 1, ratio: false },
      { key: 'backupSeconds', label: 'the backup took, s', digits: 1, ratio: false },
    ],
    figures: {
      'p99 of redirects while all else runs, beside redirects alone': main(
        ratio('mixed', 'alone', 'openP99', atMost(2, 1.3)),
      ),
      'p99.9 of redirects while all else runs': milliseconds('mixed', 'openP999', 1, atMost(20)),
    },
    notes: [
      `Open loop: redirects of ${CODES} warm codes at ${ratePerSecond} requests/s, ` +
        `${SHARE_OF_PEAK * 100} % of the peak that the same generator reached with everything ` +
        `else running (${peak}; alone ${peakAlone}).`,
      `mixed: meanwhile ${BULKS} bulks of ${BULK_ITEMS} links, ${IMAGES} images of ${IMAGE_SIZE} ` +
        `pixels and ${SEARCHES} searches fall due each second, among a million links, ` +
        `${GUESSERS} addresses guess the password of a link, and a backup is taken.`,
      'The generators share the cores with the service: the own lateness tells how much.',
      'Every hit_count was compared with the redirects received, and every status was judged.',
    ],
  }
  return await measureVariants(plan, options, say)
}

/** The maximum of redirects per second. `series`: see `begin`. */
async function findPeak(
  setup: Setup,
  { connections, seconds }: LoadOptions,
  series: number | undefined,
): Promise<number> {
  const { launch, links } = setup
  await using server = await startServer(launch)
  for (const link of links) await followLink(server, link)
  const load = { targets: targetsOf(links), connections }
  await sendClosed(server, { ...load, seconds: 1 })
  const background = await begin(setup, server, { series, seconds })
  const peak = await measurePeak(server, { ...load, seconds })
  await background?.ended
  await server.stop()
  return peak
}

async function measureRound(
  setup: Setup,
  { seconds, connections, rate: ratePerSecond }: LoadOptions,
  series: number | undefined,
): Promise<RoundResult> {
  const { launch, folder, links } = setup
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const hits = new HitCheck(client, links)
  const targets = targetsOf(links)
  for (const link of links) await followLink(server, link)
  await sendClosed(server, { targets, connections, seconds: 1 })

  await hits.begin()
  const heldBefore = await client.codesHeld()
  const background = await begin(setup, server, { series, seconds })
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  const redirects = await measureOpen(server, {
    targets,
    connections,
    seconds,
    ratePerSecond,
    sleepMs: SLEEP_MS,
  })
  const elapsed = (performance.now() - startedAt) / 1000
  const cpuPercent = ((server.cpuSeconds() - cpuBefore) / elapsed) * 100
  const answered = await background?.ended
  await hits.requireExactly(redirects.result.rightByTarget)
  const created = (await client.codesHeld()) - heldBefore
  if (created !== (answered?.bulksAnswered ?? 0) * BULK_ITEMS) {
    throw new Error(`${created} links were made by ${answered?.bulksAnswered} bulks`)
  }
  for (const link of links) await followLink(server, link)
  await server.stop()
  return {
    figures: { ...redirects.figures, cpuPercent, ...answered },
  }
}

/**
 * Starts everything except redirects and waits until all of it runs. `series`: of the bulk
 * requests; undefined if there is nothing but redirects.
 */
async function begin(
  setup: Setup,
  server: Server,
  { series, seconds }: { series: number | undefined; seconds: number },
) {
  if (series === undefined) return undefined
  const client = new HopcodeClient(server.origin, setup.folder.apiKey)
  await client.patchLink(setup.locked, { password: 'correct horse battery staple' })
  const longer = WARM_SECONDS + seconds + 2 * LEAD_SECONDS
  const sent = sendAllElse(server, setup, { series, seconds: longer })
  // The caller awaits `ended` later, and gets its error then.
  sent.catch(() => {})
  await Bun.sleep(WARM_SECONDS * 1000)
  const startedAt = performance.now()
  const copied = startBackup(setup).exited.then((code) => {
    if (code !== 0) throw new Error('the backup failed')
    return (performance.now() - startedAt) / 1000
  })
  const ended = Promise.all([sent, copied]).then(([answered, backupSeconds]) => {
    return { ...answered, backupSeconds }
  })
  ended.catch(() => {})
  await Bun.sleep(LEAD_SECONDS * 1000)
  return { ended }
}

/** A backup of the data folder while the service runs. */
function startBackup({ program, dataDir, temporaryPath }: Setup): Bun.Subprocess {
  const file = join(temporaryPath, `${Bun.randomUUIDv7()}.hopcode`)
  return tieToThisProcess(
    Bun.spawn([...program, 'backup', file], {
      env: { ...process.env, DATA_DIR: dataDir },
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
}

/** Returns the responses per second, and the number of bulk requests. */
async function sendAllElse(
  server: Server,
  { folder: { apiKey }, links, locked }: Setup,
  { series, seconds }: { series: number; seconds: number },
) {
  const headers = accountHeaders(apiKey)
  const images = links.map(({ code }) => `/api/qr/${code}?size=${IMAGE_SIZE}`)
  const searches = links.map(({ url }) => `/api/list?search=${encodeURIComponent(url.slice(-12))}`)
  const get = (path: string): Target => ({ path, headers, status: 200 })
  const send = (ratePerSecond: number, targets: Target[]) =>
    sendOwn(server, {
      targets,
      ratePerSecond,
      seconds,
      connections: BACKGROUND_CONNECTIONS,
      drainSeconds: 10,
      sleepMs: SLEEP_MS,
      priority: 'background',
    })
  const [bulks, drawn, found] = await Promise.all([
    send(BULKS, bulkTargets(apiKey, series, BULKS * seconds)),
    send(IMAGES, images.map(get)),
    send(SEARCHES, searches.map(get)),
    // Most are refused.
    generateLoad(
      { port: server.port, targets: guessTargets(locked) },
      {
        ratePerSecond: GUESSERS,
        seconds,
        connections: BACKGROUND_CONNECTIONS,
        sleepMs: SLEEP_MS,
        priority: 'background',
      },
    ),
  ])
  return {
    bulksAnswered: bulks.answered,
    bulks: bulks.answered / bulks.seconds,
    images: drawn.answered / drawn.seconds,
    searches: found.answered / found.seconds,
  }
}
