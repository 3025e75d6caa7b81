// How many links per second do bulk requests create?
// npm run bench -- bulk --seconds 3 --rounds 5
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { BULK_ITEMS, bulkMark, bulkTargets } from '../lib/bulk-load.ts'
import { atLeast, main, measureVariants, type Plan, value } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { measureClosed } from '../lib/load-parts.ts'
import { MILLION, type MillionFolder } from '../lib/million.ts'
import { followLink } from '../lib/redirect-check.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { type MillionWorkspace, millionWorkspace } from '../lib/workspace.ts'

/** Bulk requests in flight, so that the writer always has the next one. */
const CONNECTIONS = 2
/** Prepared per second: more than any machine needs, so that none is sent twice. */
const BULKS_PER_SECOND = 100
const WARMING_BULKS = 5
const INDEX_DEADLINE_MS = 60_000

const METRICS: Metric[] = [
  { key: 'linksPerSecond', label: 'links/s', digits: 0, ratio: false },
  { key: 'cpuMicros', label: 'CPU µs per link', digits: 1, ratio: false },
  { key: 'controlMicros', label: '… of them on the control thread', digits: 1, ratio: false },
  { key: 'bulkP50', label: 'bulk: p50, ms', digits: 1, ratio: false },
  { key: 'bulkP99', label: 'bulk: p99, ms', digits: 1, ratio: false },
  { key: 'indexedPerSecond', label: 'links/s, the search index included', digits: 0, ratio: false },
  { key: 'searchMs', label: 'one search right after the bulks, ms', digits: 1, ratio: false },
]

export const bulk: Scenario = {
  name: 'bulk',
  question: 'How many durable links per second do bulk requests of 1,000 create among a million?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say)
  let series = 0
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'bulks' }],
    measure: () => measureRound(workspace, options, ++series),
    settings: { items: BULK_ITEMS, bulkConnections: CONNECTIONS },
    metrics: METRICS,
    figures: {
      'durable links/s in bulks of 1,000, among a million': main(
        value('bulks', 'linksPerSecond', ' /s', 0, atLeast(20_000, 50_000)),
      ),
      'the same until all are in the search index too': value('bulks', 'indexedPerSecond', ' /s'),
    },
    notes: [
      `Bulks of ${BULK_ITEMS} new URLs, the next one at once, on ${CONNECTIONS} connections.`,
      `The account begins with ${MILLION} links and keeps what all rounds add.`,
      'New links enter the search index behind their creation: a search reads those that wait. ' +
        'Every round begins with none waiting.',
      'The database held every link that was answered, after the process was killed.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(
  { launch, folder }: MillionWorkspace,
  { seconds }: LoadOptions,
  series: number,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, folder.apiKey)
  const all = bulkTargets(folder.apiKey, series, WARMING_BULKS + BULKS_PER_SECOND * seconds)
  for (const target of all.slice(0, WARMING_BULKS)) await createOne(server, target)
  await untilIndexed(folder)

  const targets = all.slice(WARMING_BULKS)
  const heldBefore = await client.codesHeld()
  const startedAt = performance.now()
  const made = await measureClosed(server, { targets, connections: CONNECTIONS, seconds })
  const created = made.requests * BULK_ITEMS
  const searchMs = await searchOne(client, series)
  await untilIndexed(folder)
  const indexedPerSecond = (created / (performance.now() - startedAt)) * 1000

  // Killed, not stopped: acknowledged links must already be on the disk.
  await server.kill()
  requireLinks(folder, heldBefore + created, heldBefore + created + CONNECTIONS * BULK_ITEMS)
  const { requestsPerSecond, cpuMicros, controlMicros, closedP50, closedP99 } = made.figures
  return {
    figures: {
      linksPerSecond: requestsPerSecond * BULK_ITEMS,
      cpuMicros: cpuMicros / BULK_ITEMS,
      controlMicros: controlMicros / BULK_ITEMS,
      bulkP50: closedP50 / 1000,
      bulkP99: closedP99 / 1000,
      searchMs,
      indexedPerSecond,
    },
  }
}

/** Sends one bulk request and checks every item of the response and the first link. */
async function createOne(server: Server, { path, headers = {}, body = '' }: Target): Promise<void> {
  const answer = await fetch(server.origin + path, { method: 'POST', headers, body })
  const text = await answer.text()
  const { count, results } = JSON.parse(text) as {
    count: number
    results: (Link & { ok: boolean; reused: boolean })[]
  }
  const { urls } = JSON.parse(body) as { urls: string[] }
  const isRight =
    answer.status === 201 &&
    count === urls.length &&
    results.every(({ ok, reused, url }, at) => ok && !reused && url === urls[at])
  if (!isRight) throw new Error(`a bulk was answered ${answer.status}: ${text.slice(0, 500)}`)
  const [first] = results
  if (first) await followLink(server, first)
}

/** Milliseconds of a search for one link of the series. Throws unless it finds exactly that. */
async function searchOne(client: HopcodeClient, series: number): Promise<number> {
  const part = bulkMark(series, WARMING_BULKS * BULK_ITEMS)
  const before = performance.now()
  const { total, items } = await client.list(`search=${part}`)
  const elapsedMs = performance.now() - before
  if (total === 1 && items[0]?.url.endsWith(part)) return elapsedMs
  throw new Error(`a search for ${part} found ${total}`)
}

/** Waits until every link is in the search index. Throws if that takes longer than a minute. */
async function untilIndexed({ path }: MillionFolder): Promise<void> {
  const db = openReadonly(databaseFile(path), { cacheKiB: 1024 })
  try {
    const query = db.query<{ left: number }, []>(
      'SELECT (SELECT max(id) FROM links) - indexed_to AS left FROM search_progress',
    )
    const startedAt = performance.now()
    while ((query.get()?.left ?? 0) > 0) {
      if (performance.now() - startedAt > INDEX_DEADLINE_MS) {
        throw new Error(`${query.get()?.left} links are not in the search index after a minute`)
      }
      await Bun.sleep(20)
    }
  } finally {
    db.close()
  }
}

/** Throws unless the number of links is in the range, in the table and in the search index. */
function requireLinks({ path }: MillionFolder, least: number, most: number): void {
  const db = openReadonly(databaseFile(path), { cacheKiB: 1024 })
  try {
    const counts = db
      .query<{ links: number; indexed: number }, []>(
        `SELECT (SELECT count(*) FROM links) AS links,
           (SELECT count(*) FROM links_search_docsize) AS indexed`,
      )
      .get()
    const { links = 0, indexed = 0 } = counts ?? {}
    if (links >= least && links <= most && indexed === links) return
    throw new Error(`the database holds ${links} links, ${indexed} indexed, not from ${least}`)
  } finally {
    db.close()
  }
}
