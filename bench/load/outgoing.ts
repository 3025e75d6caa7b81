// What do checks of destinations and a webhook that never answers cost redirects?
// npm run bench -- outgoing --seconds 10 --rounds 5
import { Database } from 'bun:sqlite'
import { databaseFile } from '../../src/db/open.ts'
import { atMost, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { accountHeaders, createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import {
  measureOpen,
  measurePeak,
  OPEN_METRICS,
  SLEEP_MS,
  sendClosed,
  sendOwn,
} from '../lib/load-parts.ts'
import { silentReceiver, slowReceiver } from '../lib/receivers.ts'
import { followLink } from '../lib/redirect-check.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { hopcode, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const CODES = 200
const SHARE_OF_PEAK = 0.6
/** Destinations that are due, more than are checked in a round, on so many hosts. */
const DESTINATIONS = 20_000
const HOSTS = 200
/** How long a destination takes to answer. */
const DELAY_MS = 50
/** New links per second: each is an event of the webhook. */
const CREATES = 50

type Work = 'alone' | 'checks' | 'creates' | 'webhook'

interface Setup {
  launchOf: (work: Work) => Launch
  apiKey: string
  links: readonly Link[]
  /** Makes all destinations due. Called while no service uses the folder. */
  makeDue: () => void
  /** Requests that destinations have had. */
  checked: () => number
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
  let checked = 0
  using destinations = await slowReceiver(DELAY_MS, () => checked++)
  using silent = await silentReceiver()
  const { program, dataDir } = workspace
  const apiKey = createAccount(program, dataDir)
  const launchOf = (work: Work): Launch =>
    hopcode(program, dataDir, {
      ...WITHOUT_LIMITS,
      OUTGOING_HOSTS: '127.0.0.0/8',
      CHECK_DESTINATIONS: work === 'checks' ? 'on' : 'off',
    })
  const links = await createLinks(launchOf('alone'), apiKey, destinations.port)
  const webhook = `http://127.0.0.1:${silent.port}/`
  const makeDue = () => scheduleAll(dataDir)
  const setup = { launchOf, apiKey, links, makeDue, checked: () => checked, webhook }
  const peak = await findPeak(setup, options)
  const ratePerSecond = options.ratePerSecond ?? Math.floor(peak * SHARE_OF_PEAK)
  say(`peak: ${peak} redirects/s; from here on ${ratePerSecond}`)
  const names: Work[] = ['alone', 'checks', 'creates', 'webhook']
  const plan: Plan<{ name: Work }> = {
    variants: names.map((name) => ({ name })),
    measure: ({ name }) => measureRound(setup, options, { work: name, ratePerSecond }),
    baseline: 'alone',
    settings: { ratePerSecond, peak },
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
      `Open loop: redirects of ${CODES} warm codes at ${ratePerSecond} requests/s, ` +
        `${SHARE_OF_PEAK * 100} % of the peak.`,
      `checks: ${DESTINATIONS} destinations on ${HOSTS} hosts of this machine are due, and each ` +
        `answers after ${DELAY_MS} ms. creates: ${CREATES} new links a second; webhook: the same.`,
    ],
  }
  return await measureVariants(plan, options, say)
}

/** The links that are followed, and those whose destinations are checked. */
async function createLinks(launch: Launch, apiKey: string, port: number): Promise<Link[]> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  const hostOf = (n: number) => `127.0.1.${1 + (n % HOSTS)}`
  const urls = Array.from({ length: DESTINATIONS }, (_, n) => `http://${hostOf(n)}:${port}/${n}`)
  await client.createLinks(urls)
  const followed = Array.from({ length: CODES }, (_, n) => `https://www.example.com/article-${n}`)
  const links = await client.createLinks(followed)
  await server.stop()
  return links
}

function scheduleAll(dataDir: string): void {
  using db = new Database(databaseFile(dataDir))
  db.run(
    `INSERT OR REPLACE INTO link_checks (link_id, account_id, due_at, printed)
     SELECT id, account_id, 1, 1 FROM links WHERE url LIKE 'http://127.%'`,
  )
}

async function findPeak(
  { launchOf, links }: Setup,
  { connections, seconds }: LoadOptions,
): Promise<number> {
  await using server = await startServer(launchOf('alone'))
  for (const link of links) await followLink(server, link)
  const load = { targets: targetsOf(links), connections }
  await sendClosed(server, { ...load, seconds: 1 })
  const peak = await measurePeak(server, { ...load, seconds })
  await server.stop()
  return peak
}

async function measureRound(
  { launchOf, apiKey, links, makeDue, checked, webhook }: Setup,
  { seconds, connections, warmUp }: LoadOptions,
  { work, ratePerSecond }: { work: Work; ratePerSecond: number },
): Promise<RoundResult> {
  makeDue()
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

  const before = { checked: checked(), cpu: server.cpuSeconds(), at: performance.now() }
  const load = { targets, connections, seconds, ratePerSecond, sleepMs: SLEEP_MS }
  const { figures } = await measureOpen(server, load)
  const elapsed = (performance.now() - before.at) / 1000
  const cpuPercent = ((server.cpuSeconds() - before.cpu) / elapsed) * 100
  const checkedPerSecond = (checked() - before.checked) / elapsed
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
