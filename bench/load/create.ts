// How many durable links per second are created one by one, and what is the gain of group commit?
// npm run bench -- create --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openDataFolder } from '../../src/data-folder.ts'
import { FLUSH_MS } from '../lib/disk-model.ts'
import { accountHeaders, createAccount } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import type { Target } from '../lib/request.ts'
import { alternate, medianOf, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { hopcode, hopcodeProgram, WITHOUT_LIMITS } from '../lib/variants.ts'

const ROOT = resolve(import.meta.dir, '../..')
const SOURCE = join(ROOT, 'src', 'main.ts')
const SLOW_COMMIT = join(import.meta.dir, 'slow-commit.ts')
const COMMIT_EACH = join(import.meta.dir, 'baseline-commit-each.ts')
/** Sequential requests that show the duration of a commit. */
const PROBES = 20

interface Variant {
  name: string
  /** The service, with a new folder each round; absent: the baseline. */
  program?: string[]
  /** Every commit takes at least FLUSH_MS. */
  isSlowDisk: boolean
}

export const create: Scenario = {
  name: 'create',
  question: 'How many durable links per second are created one by one?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  const slow = [process.execPath, '--preload', SLOW_COMMIT, SOURCE]
  const contenders: Variant[] = [
    { name: 'commit each, slow disk', isSlowDisk: true },
    { name: 'hopcode, slow disk', program: slow, isSlowDisk: true },
    { name: 'hopcode', program, isSlowDisk: false },
  ]
  const measure = (variant: Variant) => measureRound(variant, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const { seconds, rounds, warmUp, connections } = options
  return {
    baseline: 'commit each, slow disk',
    settings: { seconds, rounds, warmUp, connections, flushMs: FLUSH_MS },
    metrics: [
      ...CLOSED_METRICS,
      { key: 'aloneMs', label: 'one alone, median, ms', digits: 2, ratio: false },
    ],
    variants,
    summary: [
      {
        label: `durable links/s one by one, ${connections} connections`,
        value: medianOf(variants, 'hopcode', 'requestsPerSecond'),
        unit: ' /s',
        digits: 0,
        isMain: true,
        target: { sense: '≥', value: 8000 },
      },
      {
        label: `the same where a flush takes ${FLUSH_MS} ms, beside a commit per request`,
        value: medianRatio(
          variants,
          'hopcode, slow disk',
          'commit each, slow disk',
          'requestsPerSecond',
        ),
        unit: '×',
        digits: 1,
        target: { sense: '≥', value: 10 },
      },
    ],
    notes: [
      `POST /api/shorten with ${connections} connections into a new database, another URL each.`,
      `slow disk is a model: the writing thread sleeps ${FLUSH_MS} ms after each commit.`,
      'commit each: a bare Bun.serve with the service’s own statements and one commit a request. ' +
        'It has no key, limiter or QR images.',
      'The database held every link that was answered, after the process was killed.',
    ],
  }
}

async function measureRound(
  { name, program, isSlowDisk }: Variant,
  { connections, seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  using temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  mkdirSync(dataDir)
  const apiKey = program ? createAccount(program, dataDir) : ''
  const launch: Launch = program
    ? { ...hopcode(program, dataDir, WITHOUT_LIMITS), name }
    : {
        name,
        command: (port) => [process.execPath, COMMIT_EACH, String(port), dataDir],
        readyPath: '/',
      }
  await using server = await startServer(launch)
  const aloneMs = await createAlone(server, apiKey)
  if (isSlowDisk && aloneMs < FLUSH_MS) throw new Error(`${name}: a commit took ${aloneMs} ms`)

  const target = (part: string): Target => ({
    method: 'POST',
    path: '/api/shorten',
    headers: accountHeaders(apiKey),
    body: JSON.stringify({ url: `https://www.example.com/${part}/article-{number}?from=mail` }),
    status: 201,
  })
  let created = PROBES
  if (warmUp > 0) {
    const targets = [target('warm-up')]
    created += (await sendClosed(server, { targets, connections, seconds: warmUp })).answered
  }
  const targets = [target('timed')]
  const { figures, requests } = await measureClosed(server, { targets, connections, seconds })
  created += requests
  // Killed, not stopped: acknowledged links must already be on the disk.
  await server.kill()
  requireLinks(dataDir, created, created + 2 * connections)
  return { figures: { ...figures, aloneMs } }
}

/** Creates links one by one and checks the responses. Returns the median time in ms. */
async function createAlone(server: Server, apiKey: string): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < PROBES; n++) {
    const url = `https://www.example.com/alone/${n}`
    const before = performance.now()
    const answer = await fetch(`${server.origin}/api/shorten`, {
      method: 'POST',
      headers: accountHeaders(apiKey),
      body: JSON.stringify({ url }),
    })
    const view = (await answer.json()) as Record<string, unknown>
    times.push(performance.now() - before)
    const isRight =
      answer.status === 201 &&
      view.url === url &&
      view.reused === false &&
      /^[A-Z0-9]{8}$/.test(String(view.code)) &&
      /^[A-Z0-9]{24}$/.test(String(view.passcode))
    if (!isRight) throw new Error(`${server.name}: ${answer.status} ${JSON.stringify(view)}`)
  }
  return times.toSorted((a, b) => a - b)[PROBES / 2] ?? Number.NaN
}

/** Throws unless the number of links is in the range and each has a different URL. */
function requireLinks(dataDir: string, least: number, most: number): void {
  const { db } = openDataFolder(dataDir)
  try {
    const counts = db
      .query<{ links: number; urls: number; said: number }, []>(
        `SELECT count(*) AS links, count(DISTINCT url) AS urls,
           (SELECT link_count FROM accounts) AS said FROM links`,
      )
      .get()
    const { links = 0, urls = 0, said = 0 } = counts ?? {}
    if (links >= least && links <= most && urls === links && said === links) return
    throw new Error(
      `the database holds ${links} links to ${urls} URLs and says ${said}, ` +
        `not ${least} to ${most}`,
    )
  } finally {
    db.close()
  }
}
