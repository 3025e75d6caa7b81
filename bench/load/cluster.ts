// What does a host cost in a cluster, and how soon do other hosts have a change?
// npm run bench -- cluster --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PostgresServer } from '../../test/support/postgres.ts'
import { measureClosed } from '../lib/closed-part.ts'
import { accountHeaders, createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { millionPlace } from '../lib/place.ts'
import type { Target } from '../lib/raw-client.ts'
import { alternate, medianOf, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Bar, Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { hopcode, hopcodeProgram, hopcodeSettings, WITHOUT_LIMITS } from '../lib/variants.ts'

const CODES = 100
/** Links of each of two clients that send bulks. */
const BULK_LINKS = 10_000
/** Changes whose arrival on the other host is timed. */
const CHANGES = 200
const DEADLINE_MS = 60_000

const ALONE = 'one host'
const CLUSTER = 'two hosts'

const METRICS: Metric[] = [
  { key: 'redirects', label: 'redirects/s of one host', digits: 0, ratio: true },
  { key: 'redirectP99', label: 'p99 of redirects, µs', digits: 0, ratio: true },
  { key: 'creates', label: 'durable links/s one by one', digits: 0, ratio: true },
  { key: 'createP99', label: 'p99 of a creation, µs', digits: 0, ratio: true },
  { key: 'bulk', label: 'durable links/s in bulk', digits: 0, ratio: true },
  {
    key: 'staleP50',
    label: 'change until the other host has it: p50, ms',
    digits: 1,
    ratio: false,
  },
  { key: 'staleP99', label: '… p99, ms', digits: 1, ratio: false },
  { key: 'catchUp', label: 'catching up, links/s', digits: 0, ratio: false },
]

export const cluster: Scenario = {
  name: 'cluster',
  question: 'What does a host cost in a cluster, and how soon do other hosts have a change?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  await using postgres = await PostgresServer.start()
  const contenders = [{ name: ALONE }, { name: CLUSTER }]
  const variants = await alternate(
    contenders,
    options.rounds,
    ({ name }) => measureRound(program, options, name === CLUSTER ? postgres : undefined),
    say,
  )
  const ratio = (key: string) => medianRatio(variants, CLUSTER, ALONE, key)
  const bars: Bar[] = [
    bar('redirects/s of a host in a cluster, beside one host', ratio('redirects'), '×', 2, 0.98),
    bar('links/s one by one in a cluster, beside one host', ratio('creates'), '×', 2, 0.5),
    bar('links/s in bulk in a cluster, beside one host', ratio('bulk'), '×', 2, 0.5),
    bar('catching up, links/s', medianOf(variants, CLUSTER, 'catchUp'), ' /s', 0, 10_000),
    {
      label: 'change until the other host has it, p99',
      value: medianOf(variants, CLUSTER, 'staleP99'),
      unit: ' ms',
      digits: 1,
      demand: { sense: '≤', bar: 50 },
    },
    {
      label: 'joining with a million links',
      value: await joinWithMillion(program, options, postgres, say),
      unit: ' s',
      digits: 1,
      demand: { sense: '≤', bar: 60 },
    },
  ]
  const { seconds, rounds, warmUp, connections } = options
  return {
    baseline: ALONE,
    settings: { seconds, rounds, warmUp, connections, codes: CODES, changes: CHANGES },
    metrics: METRICS,
    variants,
    bars,
    notes: [
      'two hosts: all load but the timed changes goes to the first one. Both hosts, PostgreSQL with ' +
        'durable commits, and the generator share the machine, so each link is stored three times.',
      'A change is a new destination; its time is from sending it to the first host until the ' +
        'second one redirects to it.',
      `Catching up: the second host is stopped while ${2 * BULK_LINKS} links are created, and is ` +
        'timed from its start until it is ready.',
      'Joining: "backup --for-join", "cluster join" and the start until it is ready.',
    ],
  }
}

const bar = (label: string, value: number, unit: string, digits: number, least: number): Bar => ({
  label,
  value,
  unit,
  digits,
  demand: { sense: '≥', bar: least },
})

/** Two folders, and how to start a host on one. Without `clusterUrl` the first one is alone. */
class Hosts {
  readonly first: string
  readonly second: string
  readonly #program: string[]
  readonly #settings: Record<string, string>

  constructor(
    program: string[],
    path: string,
    { clusterUrl = '', first = join(path, 'first') }: { clusterUrl?: string; first?: string },
  ) {
    this.#program = program
    this.#settings = { ...WITHOUT_LIMITS, CLUSTER_URL: clusterUrl }
    this.first = first
    this.second = join(path, 'second')
    for (const folder of [this.first, this.second]) mkdirSync(folder, { recursive: true })
  }

  start(folder: string): Promise<Server> {
    return startServer(hopcode(this.#program, folder, this.#settings))
  }

  init(): void {
    this.#command(this.first, ['cluster', 'init'])
  }

  /** Copies the first host, which may be running. */
  join(): void {
    const file = join(this.second, '..', 'join.backup')
    this.#command(this.first, ['backup', '--for-join', file])
    this.#command(this.second, ['cluster', 'join', file])
  }

  #command(folder: string, words: string[]): void {
    const { PATH = '', HOME = '' } = process.env
    const env = { PATH, HOME, ...hopcodeSettings(folder, 3000), ...this.#settings }
    const run = Bun.spawnSync([...this.#program, ...words], { cwd: folder, env })
    if (run.exitCode !== 0) throw new Error(`hopcode ${words.join(' ')}: ${run.stderr}`)
  }
}

async function measureRound(
  program: string[],
  options: LoadOptions,
  postgres: PostgresServer | undefined,
): Promise<RoundResult> {
  using temporary = new TemporaryFolder()
  const url = postgres ? postgres.url(await postgres.createDatabase()) : ''
  const hosts = new Hosts(program, temporary.path, { clusterUrl: url })
  const apiKey = createAccount(program, hosts.first)
  if (url) {
    hosts.init()
    hosts.join()
  }
  await using first = await hosts.start(hosts.first)
  const second = url ? await hosts.start(hosts.second) : undefined
  try {
    const figures = await measureFirst(first, apiKey, options)
    if (!second) return { figures }
    const stale = await timeChanges(first, second, apiKey)
    await second.stop()
    await createInBulk(first, apiKey, 'missed')
    const startedAt = performance.now()
    await using again = await hosts.start(hosts.second)
    const catchUp = (2 * BULK_LINKS) / ((performance.now() - startedAt) / 1000)
    await again.stop()
    return { figures: { ...figures, ...stale, catchUp } }
  } finally {
    await second?.kill()
  }
}

async function measureFirst(server: Server, apiKey: string, { connections, seconds }: LoadOptions) {
  const client = new HopcodeClient(server.origin, apiKey)
  const urls = Array.from({ length: CODES }, (_, n) => `https://www.example.com/followed/${n}`)
  const links = await client.createLinks(urls)
  const followed = links.map(
    ({ code, url }): Target => ({ path: `/${code}`, status: 302, location: url }),
  )
  const create: Target = {
    method: 'POST',
    path: '/api/shorten',
    headers: accountHeaders(apiKey),
    body: JSON.stringify({ url: 'https://www.example.com/{number}/article' }),
    status: 201,
  }
  const redirects = await measureClosed(server, { targets: followed, connections, seconds })
  const creates = await measureClosed(server, { targets: [create], connections, seconds })
  const startedAt = performance.now()
  await createInBulk(server, apiKey, 'bulk')
  return {
    redirects: redirects.figures.requestsPerSecond ?? Number.NaN,
    redirectP99: redirects.figures.closedP99 ?? Number.NaN,
    creates: creates.figures.requestsPerSecond ?? Number.NaN,
    createP99: creates.figures.closedP99 ?? Number.NaN,
    bulk: (2 * BULK_LINKS) / ((performance.now() - startedAt) / 1000),
  }
}

async function createInBulk(server: Server, apiKey: string, name: string): Promise<void> {
  const send = (part: number) =>
    new HopcodeClient(server.origin, apiKey).createLinks(
      Array.from({ length: BULK_LINKS }, (_, n) => `https://www.example.com/${name}/${part}/${n}`),
    )
  await Promise.all([send(1), send(2)])
}

/** Milliseconds from sending a change to one host until the other one redirects to it. */
async function timeChanges(first: Server, second: Server, apiKey: string) {
  const headers = accountHeaders(apiKey)
  const created = await fetch(`${first.origin}/api/shorten`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ url: 'https://www.example.com/before' }),
  })
  const { code, passcode } = (await created.json()) as { code: string; passcode: string }
  const times: number[] = []
  for (let n = 0; n < CHANGES; n++) {
    const url = `https://www.example.com/change/${n}`
    const body = JSON.stringify({ code, passcode, url })
    const startedAt = performance.now()
    const changed = fetch(`${first.origin}/api/update`, { method: 'POST', headers, body })
    for (;;) {
      const answer = await fetch(`${second.origin}/${code}`, { redirect: 'manual' })
      if (answer.headers.get('location') === url) break
      if (performance.now() - startedAt > DEADLINE_MS) throw new Error('a change did not arrive')
    }
    times.push(performance.now() - startedAt)
    if (!(await changed).ok) throw new Error(`a change was answered with ${(await changed).status}`)
  }
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
  return { staleP50: at(0.5), staleP99: at(0.99) }
}

/** Seconds. */
async function joinWithMillion(
  program: string[],
  options: LoadOptions,
  postgres: PostgresServer,
  say: Progress,
): Promise<number> {
  using place = await millionPlace(options, say)
  using temporary = new TemporaryFolder()
  const url = postgres.url(await postgres.createDatabase())
  const hosts = new Hosts(program, temporary.path, { clusterUrl: url, first: place.dataDir })
  hosts.init()
  await using _first = await hosts.start(hosts.first)
  say('joining with a million links')
  const startedAt = performance.now()
  hosts.join()
  await using _second = await hosts.start(hosts.second)
  return (performance.now() - startedAt) / 1000
}
