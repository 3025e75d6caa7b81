// What do checks of destinations and a webhook that never answers cost redirects?
// npm run bench -- outgoing --seconds 10 --rounds 5
import { Database } from 'bun:sqlite'
import { databaseFile } from '../../src/db/open.ts'
import { atMost, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { accountHeaders, createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { measureOpen, OPEN_METRICS, SLEEP_MS, sendClosed, sendOwn } from '../lib/load-parts.ts'
import { silentReceiver } from '../lib/receivers.ts'
import { followLink } from '../lib/redirect-check.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { hopcode, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const CODES = 200
/** Destinations that are due, on so many hosts. */
const DESTINATIONS = 50_000
const HOSTS = 200
/** New links per second: each is an event of the webhook. */
const CREATES = 50

type Work = 'alone' | 'checks' | 'creates' | 'webhook'

interface Setup {
  launchOf: (work: Work) => Launch
  apiKey: string
  links: readonly Link[]
  dataDir: string
  webhook: string
}

export const outgoing: Scenario = {
  name: 'outgoing',
  question: 'What do checks of destinations and a webhook that never answers cost redirects?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the service and its links')
  using workspace = await emptyWorkspace(options)
  using silent = await silentReceiver()
  const { program, dataDir } = workspace
  const apiKey = createAccount(program, dataDir)
  const launchOf = (work: Work): Launch =>
    hopcode(program, dataDir, {
      ...WITHOUT_LIMITS,
      OUTGOING_HOSTS: '127.0.0.1',
      CHECK_DESTINATIONS: work === 'checks' ? 'on' : 'off',
    })
  const links = await createLinks(launchOf('alone'), apiKey)
  const setup = { launchOf, apiKey, links, dataDir, webhook: silent.url }
  const { rate } = options
  const names: Work[] = ['alone', 'checks', 'creates', 'webhook']
  const plan: Plan<{ name: Work }> = {
    variants: names.map((name) => ({ name })),
    measure: ({ name }) => measureRound(setup, options, name),
    baseline: 'alone',
    settings: { rate },
    metrics: [
      ...OPEN_METRICS,
      { key: 'cpuPercent', label: 'CPU of the service, % of a core', digits: 0, ratio: true },
      { key: 'checked', label: 'destinations checked/s', digits: 0, ratio: false },
      { key: 'createP99', label: 'p99 of creating a link, µs', digits: 0, ratio: false },
    ],
    figures: {
      'p99 of redirects while destinations are checked, beside redirects alone': ratio(
        'checks',
        'alone',
        'openP99',
        atMost(1.05),
      ),
      'p99 of redirects beside new links with a webhook that never answers, beside without': ratio(
        'webhook',
        'creates',
        'openP99',
        atMost(1.1),
      ),
      'p99 of creating these links': ratio('webhook', 'creates', 'createP99', atMost(1.1)),
    },
    notes: [
      `Open loop: redirects of ${CODES} warm codes at ${rate} requests/s.`,
      `checks: ${DESTINATIONS} destinations are due. Their addresses are refused without a ` +
        'connection, so that more are checked in a second than any network permits.',
      `creates: ${CREATES} new links a second; webhook: the same, each an event.`,
    ],
  }
  return await measureVariants(plan, options, say)
}

/** The links that are followed, and those whose destinations are checked. */
async function createLinks(launch: Launch, apiKey: string): Promise<Link[]> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  const hostOf = (n: number) => `127.0.1.${1 + (n % HOSTS)}`
  const urls = Array.from({ length: DESTINATIONS }, (_, n) => `http://${hostOf(n)}/${n}`)
  await client.createLinks(urls)
  const followed = Array.from({ length: CODES }, (_, n) => `https://www.example.com/article-${n}`)
  const links = await client.createLinks(followed)
  await server.stop()
  return links
}

/** Makes all destinations due. Called while no service uses the folder. */
function scheduleAll(dataDir: string): void {
  using db = new Database(databaseFile(dataDir))
  db.run(
    `INSERT OR REPLACE INTO link_checks (link_id, account_id, due_at, printed)
     SELECT id, account_id, 1, 1 FROM links WHERE url LIKE 'http://127.%'`,
  )
}

/** Destinations that were checked since `scheduleAll`. */
function countChecked(dataDir: string): number {
  using db = new Database(databaseFile(dataDir), { readonly: true })
  const found = db.query('SELECT count(*) AS n FROM link_checks WHERE due_at > 1').get()
  return (found as { n: number }).n
}

async function measureRound(
  { launchOf, apiKey, links, dataDir, webhook }: Setup,
  { seconds, connections, warmUp, rate: ratePerSecond }: LoadOptions,
  work: Work,
): Promise<RoundResult> {
  scheduleAll(dataDir)
  await using server = await startServer(launchOf(work))
  const client = new HopcodeClient(server.origin, apiKey)
  const hookId = work === 'webhook' ? await client.addWebhook(webhook) : undefined
  const targets = targetsOf(links)
  for (const link of links) await followLink(server, link)
  await sendClosed(server, { targets, connections, seconds: 1 })
  const isCreating = work === 'creates' || work === 'webhook'
  const creates = isCreating ? sendCreates(server, apiKey, warmUp + seconds) : undefined
  creates?.catch(() => {})
  await Bun.sleep(warmUp * 1000)

  const before = { checked: countChecked(dataDir), cpu: server.cpuSeconds(), at: performance.now() }
  const load = { targets, connections, seconds, ratePerSecond, sleepMs: SLEEP_MS }
  const { figures } = await measureOpen(server, load)
  const elapsed = (performance.now() - before.at) / 1000
  const cpuPercent = ((server.cpuSeconds() - before.cpu) / elapsed) * 100
  const checkedPerSecond = (countChecked(dataDir) - before.checked) / elapsed
  if (work === 'checks' && checkedPerSecond < 1) throw new Error('no destination was checked')
  const created = await creates
  if (hookId !== undefined) await client.removeWebhook(hookId)
  await server.stop()
  return {
    figures: {
      ...figures,
      cpuPercent,
      checked: checkedPerSecond,
      ...(created && { createP99: created.latency.p99 }),
    },
  }
}

const sendCreates = (server: Server, apiKey: string, seconds: number) =>
  sendOwn(server, {
    targets: [
      {
        method: 'POST',
        path: '/api/shorten',
        headers: accountHeaders(apiKey),
        body: JSON.stringify({ url: `https://www.example.com/${Bun.randomUUIDv7()}/{number}` }),
        status: 201,
      },
    ],
    ratePerSecond: CREATES,
    seconds,
    connections: 4,
    drainSeconds: 10,
    sleepMs: SLEEP_MS,
    priority: 'background',
  })
