// What is the latency of redirects while one account does as much as its limits allow?
// npm run bench -- isolation --seconds 5 --rounds 5
import { setPassword } from '../lib/dashboard-client.ts'
import { atMost, measureVariants, milliseconds, type Plan, ratio } from '../lib/figures.ts'
import { GUESS_SETTINGS, GUESSERS, guessTargets } from '../lib/guesses.ts'
import {
  accountHeaders,
  createAccount,
  HopcodeClient,
  issueResetPath,
} from '../lib/hopcode-client.ts'
import { generateLoad } from '../lib/load.ts'
import { SLEEP_MS, sendOwn } from '../lib/load-parts.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Figures, Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { hopcode, type Link } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

/** Redirects per second. */
const RATES = [5000, 20_000] as const
const LINKS = 200
const PERCENTILES = { p50: 'p50', p99: 'p99', 'p99.9': 'p999', slowest: 'max' } as const
/** Time between two batches, and their greatest length: it takes little of both cores. */
const BATCHES = { sleepMs: 0.5, batch: LINKS, untimedSeconds: 1, priority: 'real-time' } as const
/** Further links of the account, which no visitor follows. */
const OTHER_LINKS = 20_000
const PASSWORD = 'correct horse battery staple'
const LEAD_SECONDS = 1
const CONNECTIONS = 4
/** The longest URL that the service accepts. */
const URL_LENGTH = 8192
const BULK_ITEMS = 2000

interface Setup {
  launch: ReturnType<typeof hopcode>
  program: string[]
  dataDir: string
  apiKey: string
  links: readonly Link[]
  /** The code of a link with a password. */
  locked: string
}

export const isolation: Scenario = {
  name: 'isolation',
  question: 'What is the latency of redirects while one account does as much as its limits allow?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the service and its links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  const apiKey = createAccount(program, dataDir)
  // The limits of the account stay on: they decide how much of its load is admitted.
  const settings = {
    ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
    ENTERPRISE_WRITES_PER_MINUTE: '6000',
    ...GUESS_SETTINGS,
  }
  const launch = hopcode(program, dataDir, settings)
  const setup = { launch, program, dataDir, apiKey, ...(await prepare(launch, apiKey)) }
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'alone' }, { name: 'beside the load' }],
    measure: ({ name }) => measureRound(setup, options, { isLoaded: name !== 'alone' }),
    baseline: 'alone',
    metrics: RATES.flatMap((rate) => [
      ...Object.keys(PERCENTILES).map((key) => {
        return { key: key + rate, label: `${rate}/s, ${key}, µs`, digits: 0, ratio: true }
      }),
      {
        key: `lateness${rate}`,
        label: `${rate}/s, own lateness, slowest, µs`,
        digits: 0,
        ratio: false,
      },
    ]),
    figures: Object.assign({}, ...RATES.map(figuresOf)) as ReturnType<typeof figuresOf>,
    notes: [
      `Open loop: redirects of ${LINKS} warm codes at ${RATES.join(' and ')} requests/s, ` +
        'measured from when each was due. Those of a millisecond are sent in one piece, so that ' +
        'the generator leaves both cores to the service.',
      `Meanwhile an account sends bulks of ${BULK_ITEMS} URLs of ${URL_LENGTH} characters, ` +
        'searches, pages of the dashboard and exports, more than its limits admit, and another ' +
        `client sends wrong keys; ${GUESSERS} addresses guess the password of a link.`,
      'Every hit_count was compared with the redirects received.',
    ],
  }
  return await measureVariants(plan, options, say)
}

const figuresOf = (rate: number): Plan<{ name: string }>['figures'] => ({
  [`p99 of ${rate} redirects/s beside the load, and alone`]: ratio(
    'beside the load',
    'alone',
    `p99${rate}`,
    atMost(1.5, 1.2),
  ),
  [`p99.9 of ${rate} redirects/s beside the load`]: milliseconds(
    'beside the load',
    `p99.9${rate}`,
    1,
    atMost(10),
  ),
  [`slowest of ${rate} redirects/s beside the load`]: milliseconds(
    'beside the load',
    `slowest${rate}`,
    1,
    atMost(50),
  ),
})

async function prepare(
  launch: Setup['launch'],
  apiKey: string,
): Promise<Pick<Setup, 'links' | 'locked'>> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  const urlOf = (n: number) => `https://example.com/landing/${n}?from=print`
  const links = await client.createLinks(Array.from({ length: LINKS }, (_, n) => urlOf(n)))
  await client.createLinks(Array.from({ length: OTHER_LINKS }, (_, n) => urlOf(LINKS + n)))
  const [{ code: locked } = { code: '' }] = await client.createLinks(['https://example.com/locked'])
  await client.patchLink(locked, { password: PASSWORD })
  await server.stop()
  return { links, locked }
}

async function measureRound(
  { launch, program, dataDir, apiKey, links, locked }: Setup,
  { connections, seconds }: LoadOptions,
  { isLoaded }: { isLoaded: boolean },
): Promise<RoundResult> {
  const resetPath = issueResetPath(program, dataDir)
  await using server = await startServer(launch)
  const cookie = await setPassword(server.origin, resetPath, PASSWORD)
  const hits = new HitCheck(new HopcodeClient(server.origin, apiKey), links)
  const targets = targetsOf(links)
  for (const link of links) await followLink(server, link)
  await hits.begin()
  const total = RATES.length * (seconds + 2 * LEAD_SECONDS) + 2 * LEAD_SECONDS
  const ended = isLoaded ? sendLoad(server, { apiKey, cookie, locked, seconds: total }) : undefined
  await Bun.sleep(LEAD_SECONDS * 1000)
  const figures: Figures = {}
  const right = links.map(() => 0)
  for (const ratePerSecond of RATES) {
    const load = { targets, connections, seconds, ratePerSecond, ...BATCHES }
    const result = await sendOwn(server, load)
    for (const [key, percentile] of Object.entries(PERCENTILES)) {
      figures[key + ratePerSecond] = result.latency[percentile]
    }
    figures[`lateness${ratePerSecond}`] = result.lateness.max
    result.rightByTarget.forEach((count, at) => {
      right[at] = (right[at] ?? 0) + count
    })
  }
  await ended
  await hits.requireExactly(right)
  await server.stop()
  return { figures }
}

/** Sends all kinds of load at once, whether it is answered or refused. */
async function sendLoad(
  { port }: Server,
  {
    apiKey,
    cookie,
    locked,
    seconds,
  }: { apiKey: string; cookie: string; locked: string; seconds: number },
): Promise<void> {
  const headers = accountHeaders(apiKey)
  const urls = (bulk: number) =>
    Array.from({ length: BULK_ITEMS }, (_, item) =>
      `https://example.com/${bulk}/${item}/`.padEnd(URL_LENGTH, 'long'),
    )
  const page = (path: string): Target => ({ path, headers: { cookie }, status: 200 })
  const kinds: { ratePerSecond: number; targets: Target[] }[] = [
    {
      ratePerSecond: 2,
      targets: Array.from({ length: 4 }, (_, bulk) => ({
        method: 'POST',
        path: '/api/bulk-shorten',
        headers,
        body: JSON.stringify({ urls: urls(bulk) }),
        status: 201,
      })),
    },
    {
      ratePerSecond: 200,
      targets: Array.from({ length: 100 }, (_, n) => ({
        path: `/api/list?search=g/${n}`,
        headers,
        status: 200,
      })),
    },
    { ratePerSecond: 100, targets: [page('/app/links'), page('/app/analytics')] },
    { ratePerSecond: 2, targets: [page('/app/links.csv')] },
    {
      ratePerSecond: 50,
      targets: [{ path: '/api/list', headers: { 'X-API-Key': 'wrong' }, status: 401 }],
    },
    { ratePerSecond: GUESSERS, targets: guessTargets(locked) },
  ]
  await Promise.all(
    kinds.map(({ targets, ratePerSecond }) =>
      generateLoad(
        { port, targets },
        {
          ratePerSecond,
          seconds,
          connections: CONNECTIONS,
          backlogMax: 1_000_000,
          sleepMs: SLEEP_MS,
          priority: 'background',
        },
      ),
    ),
  )
}
