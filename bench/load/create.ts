// How many durable links per second are created one by one?
// npm run bench -- create --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { atLeast, main, measureVariants, type Plan, ratio, value } from '../lib/figures.ts'
import { accountHeaders, createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import { silentReceiver } from '../lib/receivers.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { hopcode, hopcodeProgram, WITHOUT_LIMITS } from '../lib/variants.ts'

/** Sequential requests that show the duration of a commit. */
const PROBES = 20

export const create: Scenario = {
  name: 'create',
  question: 'How many durable links per second are created one by one?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  const { connections } = options
  using receiver = await silentReceiver()
  const plan: Plan<{ name: string; webhook?: string }> = {
    // Another program, of `compare`, may not have webhooks.
    variants: [
      { name: 'hopcode' },
      ...(options.program ? [] : [{ name: 'webhook', webhook: receiver.url }]),
    ],
    measure: ({ webhook }) => measureRound(program, options, webhook),
    metrics: [
      ...CLOSED_METRICS,
      { key: 'aloneMs', label: 'one alone, median, ms', digits: 2, ratio: false },
    ],
    figures: {
      [`durable links/s one by one, ${connections} connections`]: main(
        value('hopcode', 'requestsPerSecond', ' /s', 0, atLeast(8000)),
      ),
      ...(!options.program && {
        'the same with a webhook that never answers': ratio(
          'webhook',
          'hopcode',
          'requestsPerSecond',
          atLeast(0.9),
        ),
      }),
    },
    notes: [
      `POST /api/shorten with ${connections} connections into a new database, another URL each.`,
      'The database held every link that was answered, after the process was killed.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(
  program: string[],
  { connections, seconds, warmUp }: LoadOptions,
  webhook?: string,
): Promise<RoundResult> {
  using temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  mkdirSync(dataDir)
  const apiKey = createAccount(program, dataDir)
  const settings = { ...WITHOUT_LIMITS, OUTGOING_HOSTS: '127.0.0.1' }
  await using server = await startServer(hopcode(program, dataDir, settings))
  if (webhook) await new HopcodeClient(server.origin, apiKey).addWebhook(webhook)
  const aloneMs = await createAlone(server, apiKey)

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
  const db = openReadonly(databaseFile(dataDir), { cacheKiB: 65_536 })
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
