import { rmSync } from 'node:fs'
import { issueKey } from '../../src/accounts/keys.ts'
import { issueOneTimeLink, OneTimeLinkStore } from '../../src/accounts/one-time-links.ts'
import type { Plan } from '../../src/accounts/plans.ts'
import { addDomain } from '../../src/addresses/operations.ts'
import { type App, startApp } from '../../src/app.ts'
import type { Fetch } from '../../src/certificates/acme.ts'
import { type Administration, operatorOf } from '../../src/cli/administration.ts'
import type { MovingDeps } from '../../src/cli/moving.ts'
import { readConfig } from '../../src/config.ts'
import { type DataFolder, openDataFolder } from '../../src/data-folder.ts'
import { SettingStore } from '../../src/db/settings.ts'
import { clocksIn } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { type RandomBytes, secureRandom } from '../../src/lib/random.ts'
import { maintenanceSetting } from '../../src/maintenance/mode.ts'
import { type KeyStoreDeps, revokeKey, rotateKey } from './administration.ts'
import { areEqual, type HostFolders, hostFolders, onEveryHost } from './app-cluster.ts'
import { redirectThreads } from './binary.ts'
import { fillDataFolder } from './data-folder.ts'
import { temporaryFolderInMemory } from './folder.ts'
import { openQuickWorker, openReusedWorker } from './reused-worker.ts'

/** 2026-03-01T12:00:00.000Z: when every test begins. */
export const START = Date.UTC(2026, 2, 1, 12)
export const JSON_TYPE = 'application/json'

export type Body = Record<string, unknown>

export interface Answer {
  status: number
  headers: Headers
  /** The parsed JSON body; empty for another content type. */
  body: Body
  text: string
  bytes: Uint8Array
}

export interface CallOptions {
  /** The name of an account of the test (`free`), or a whole API key. */
  key?: string
  json?: unknown
  /** Sent as it is, in place of `json`. */
  raw?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** The caller's address, through a trusted proxy. */
  from?: string
}

interface TestAppOptions {
  /** Settings beside the test's own. */
  env?: Record<string, string>
  /** A data folder to start on; it is not removed. */
  dataDir?: string
  random?: RandomBytes
  journalEntries?: number
  /** Addresses that the limiter tells apart at once. */
  addressesMax?: number
  /** How often details of visits are written. */
  visitFlushMs?: number
  /** Requests to a certificate authority. */
  fetch?: Fetch
  /** Starts a thread of the service. Default: one that an earlier service has closed, if any. */
  openWorker?: (url: URL) => Worker
  /** Hashes passwords at their real cost, 55 ms of CPU each. */
  realPasswords?: boolean
  /**
   * True: tests read metrics at the public address, although they trust a proxy. `METRICS_LISTEN`
   * or false: as the settings say.
   */
  localMetrics?: boolean
}

let hasMoreDomains = false

/** Whether each service that starts from now on has two more domains, which no test uses. */
export function serveMoreDomains(on: boolean): void {
  hasMoreDomains = on
}

async function addTwoDomains({ administration }: TestApp): Promise<void> {
  for (const codes of ['own', 'all'] as const) {
    const host = `${codes}.domain.test`
    if (administration.data.domains.findByHost(host)) continue
    await addDomain(administration, operatorOf(administration), { host, codes, for: 'all' })
  }
}

/** The real service on a port of its own, with a data folder, a clock and accounts of its own. */
export async function testApp(options: TestAppOptions = {}): Promise<TestApp> {
  const dataDir = options.dataDir ?? newDataFolder()
  const time = sharedTime(START)
  const lines: string[] = []
  const folders = await hostFolders(dataDir)
  const apps: App[] = []
  for (const path of folders.dataDirs) {
    apps.push(await startHost(options, { dataDir: path, folders, time, lines }))
  }
  const app = new TestApp(apps, {
    dataDir,
    folders,
    keep: options.dataDir !== undefined,
    time,
    lines,
  })
  if (apps.length > 1) await app.untilReady()
  if (hasMoreDomains) await addTwoDomains(app)
  return app
}

type HostInside = Pick<Inside, 'dataDir' | 'folders' | 'time' | 'lines'>

async function startHost(
  options: TestAppOptions,
  { dataDir, folders, time, lines }: HostInside,
): Promise<App> {
  const config = readConfig({
    PORT: '0',
    HOST: '127.0.0.1',
    BASE_URL: 'http://hop.test',
    DATA_DIR: dataDir,
    TRUSTED_PROXIES: '127.0.0.1',
    LOG_LEVEL: 'debug',
    // Room for fewer than by default, which each service would allocate and clear.
    LINK_CACHE_MAX: '10000',
    CLUSTER_URL: folders.clusterUrl,
    ...redirectThreads(),
    ...options.env,
    // Tests wait until each host has counted a hit.
    ...(folders.clusterUrl !== undefined && { HIT_FLUSH_MS: '10' }),
  })
  const { localMetrics = config.metricsListen === undefined } = options
  const app = await startApp(localMetrics ? { ...config, localMetrics } : config, {
    ...clocksIn(time.memory),
    time: time.memory,
    random: options.random ?? secureRandom,
    log: createLog({ level: 'debug', human: false, write: (line) => lines.push(line) }),
    journalEntries: options.journalEntries ?? 4096,
    openWorker: options.openWorker ?? (options.realPasswords ? openReusedWorker : openQuickWorker),
    addressesMax: options.addressesMax ?? 10_000,
    visitFlushMs: options.visitFlushMs,
    ...(options.fetch && { fetch: options.fetch }),
  })
  app.operators?.listen({ hostname: '127.0.0.1', port: 0 })
  return app
}

function newDataFolder(): string {
  const { path } = temporaryFolderInMemory()
  fillDataFolder(path)
  return path
}

interface Inside {
  dataDir: string
  folders: HostFolders
  keep: boolean
  time: ReturnType<typeof sharedTime>
  lines: string[]
}

export class TestApp implements AsyncDisposable {
  readonly dataDir: string
  /** Everything the service has logged, a line each. */
  readonly log: string[]
  /** One, or several that form a cluster. */
  readonly #apps: readonly App[]
  readonly #inside: Inside
  readonly #keys = new Map<string, string>()
  #setupLink: string | undefined
  #closed = false

  constructor(apps: readonly App[], inside: Inside) {
    this.#apps = apps
    this.#inside = inside
    this.dataDir = inside.dataDir
    this.log = inside.lines
  }

  /** Undefined for one host alone. */
  get clusterUrl(): string | undefined {
    return this.#inside.folders.clusterUrl
  }

  /** Of any host. */
  get url(): string {
    return `http://127.0.0.1:${this.#anyApp().port}`
  }

  /** Where https is, with `HTTPS_PORT`. The service has the certificate of another name. */
  get tlsUrl(): string {
    return `https://127.0.0.1:${this.#anyApp().httpsPort}`
  }

  /** Where metrics and probes are, with `METRICS_LISTEN` set. */
  get operatorsUrl(): string {
    return `http://127.0.0.1:${this.#anyApp().operators?.server?.port}`
  }

  /** What a stop begins with: /-/ready says no from now on. */
  async beginStop(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.beginStop()))
  }

  /** The link that sets up the owner's account, as the start of a host prints it. */
  get setupLink(): string {
    const [app] = this.#apps
    if (this.#apps.length === 1) return app?.setupLink ?? ''
    // In a cluster a command creates it.
    this.#setupLink ??= this.administer(({ db, hasher }) => {
      const deps = { hasher, random: secureRandom }
      const { path, stored } = issueOneTimeLink(deps, { purpose: 'setup' }, this.now())
      new OneTimeLinkStore(db).add(stored)
      return `http://hop.test${path}`
    })
    return this.#setupLink
  }

  /** What commands use in the running service. */
  get administration(): Administration & MovingDeps {
    return { ...this.#anyApp().administration, baseUrl: 'http://hop.test' }
  }

  /** Resolves when every host answers requests. */
  async untilReady(): Promise<void> {
    await eventually('every host is ready', async () => {
      const asked = this.#apps.map(({ port }) => fetch(`http://127.0.0.1:${port}/-/ready`))
      return (await Promise.all(asked)).every(({ ok }) => ok)
    })
  }

  now(): number {
    return this.#inside.time.now
  }

  /** Moves both clocks ahead. */
  advance(ms: number): void {
    this.#inside.time.now += ms
    this.#inside.time.monotonic += ms
  }

  /** Sets the wall clock ahead, or back, while no time passes: as an operator or NTP does. */
  stepWall(ms: number): void {
    this.#inside.time.now += ms
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const headers: Record<string, string> = {
      // A caller of its own for each test call would hide the limiter: all share one unless told.
      'x-forwarded-for': options.from ?? '192.0.2.1',
      ...(options.key !== undefined && { 'x-api-key': this.#keyOf(options.key) }),
      ...('json' in options && { 'content-type': JSON_TYPE }),
      ...options.headers,
    }
    const body = options.raw ?? ('json' in options ? JSON.stringify(options.json) : null)
    const response = await fetch(this.url + path, { method, headers, body, redirect: 'manual' })
    if (response.status === 302 && this.#apps.length > 1) await this.untilCounted()
    return toAnswer(response)
  }

  /**
   * Hits are counted a little later, in the hour of the clock then, and those of other hosts later
   * still: resolves when every host has all of them.
   */
  async untilCounted(): Promise<void> {
    const isCounted = () => this.#apps.every((app) => app.hitsWaiting() === 0)
    await eventually('every host has counted the hits', () => {
      return isCounted() && areEqual(this.#inside.folders)
    })
  }

  /**
   * The key of an account named like its plan (`free`) or `<plan>-<anything>`; made at its first
   * mention.
   */
  key(name: string): string {
    let key = this.#keys.get(name)
    if (key === undefined) {
      const account = { email: `${name}@example.com`, plan: name.split('-')[0] as Plan }
      key = this.#administer((deps) => {
        const issued = issueKey(deps)
        deps.accounts.create({ ...account, key: issued.stored, now: this.now() })
        return issued.key
      })
      this.#keys.set(name, key)
    }
    return key
  }

  /** Gives the account a new key. Returns the old one. */
  rotateKey(name: string, { now = false } = {}): string {
    const old = this.key(name)
    const next = this.#administer((deps) => rotateKey(deps, this.#idOf(deps, name), { now }))
    this.#keys.set(name, next)
    return old
  }

  revokeKey(name: string, { now = false } = {}): void {
    this.key(name)
    this.#administer((deps) => revokeKey(deps, this.#idOf(deps, name), { now }))
  }

  setPlan(name: string, plan: Plan): void {
    this.key(name)
    this.#administer((deps) => deps.accounts.change(this.#idOf(deps, name), { plan }))
  }

  /** Until an epoch time; undefined ends it. */
  maintenance(until: number | undefined): void {
    const { name, value } = maintenanceSetting(until)
    this.administer(({ db }) => new SettingStore(db).set(name, value))
  }

  /** A new active code of an account. */
  async shorten(url: string, key = 'free'): Promise<{ code: string; passcode: string }> {
    const { body } = await this.call('POST', '/api/shorten', { key, json: { url } })
    const { code, passcode } = body as { code: string; passcode: string }
    return { code, passcode }
  }

  async reserve(name: string, key = 'free'): Promise<{ code: string; passcode: string }> {
    const { body } = await this.call('POST', '/api/reserve', { key, json: { code: name } })
    const { code, passcode } = body as { code: string; passcode: string }
    return { code, passcode }
  }

  /** A new active code of a chosen name. */
  async claim(
    name: string,
    url = 'https://example.com/landing',
    key = 'free',
  ): Promise<{ code: string; passcode: string }> {
    const { code, passcode } = await this.reserve(name, key)
    const json = { code, passcode, url }
    const { status, text } = await this.call('POST', '/api/update', { key, json })
    if (status !== 200) throw new Error(`${name} cannot be claimed: ${status} ${text}`)
    return { code, passcode }
  }

  /** Stops the service and keeps the data folder, for another to start on it. */
  async stop(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const app of this.#apps) {
      await app.stopListening(0)
      await app.operators?.server?.stop(true)
      await app.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    if (!this.#inside.keep) rmSync(this.dataDir, { recursive: true, force: true })
  }

  #keyOf(nameOrKey: string): string {
    return /^(free|pro|enterprise)(-|$)/.test(nameOrKey) ? this.key(nameOrKey) : nameOrKey
  }

  #idOf({ accounts }: KeyStoreDeps, name: string): number {
    const id = accounts.findByEmail(`${name}@example.com`)?.id
    if (id === undefined) throw new Error(`the test has no account ${name}`)
    return id
  }

  /** Changes the database beside the running service, as other programs do. */
  administer<Result>(work: (folder: DataFolder) => Result): Result {
    const folder = openDataFolder(this.dataDir)
    using db = folder.db
    return onEveryHost(this.#inside.folders, db, () => work(folder))
  }

  #administer<Result>(work: (deps: KeyStoreDeps) => Result): Result {
    return this.administer(({ accounts, hasher }) =>
      work({ accounts, hasher, clock: () => this.now(), random: secureRandom }),
    )
  }

  #anyApp(): App {
    return this.#apps[Math.floor(Math.random() * this.#apps.length)] as App
  }
}

const EVENTUALLY_MS = 60_000

/**
 * Waits for work that goes on after an answer. Throws after a minute. Each pause is a quarter of
 * the time so far, so that `isSo` runs at most about 40 times: on a slow machine, more frequent
 * requests would spend the caller's budget, which a test's clock does not refill.
 */
export async function eventually(
  what: string,
  isSo: () => boolean | Promise<boolean>,
): Promise<void> {
  const begun = performance.now()
  while (!(await isSo())) {
    const elapsedMs = performance.now() - begun
    if (elapsedMs > EVENTUALLY_MS) throw new Error(`never happened: ${what}`)
    await Bun.sleep(Math.max(10, elapsedMs / 4))
  }
}

export async function toAnswer(response: Response): Promise<Answer> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  const text = new TextDecoder().decode(bytes)
  const type = response.headers.get('content-type') ?? ''
  const isJson = /^application\/(\w+\+)?json\b/.test(type) && text !== ''
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : {},
    text,
    bytes,
  }
}

/** Both clocks of a test, in memory that the threads of the service share. */
function sharedTime(start: number) {
  const memory = new SharedArrayBuffer(16)
  const times = new Float64Array(memory)
  times.set([start, 1000])
  return {
    memory,
    get now() {
      return times[0] as number
    },
    set now(ms: number) {
      times[0] = ms
    },
    get monotonic() {
      return times[1] as number
    },
    set monotonic(ms: number) {
      times[1] = ms
    },
  }
}
