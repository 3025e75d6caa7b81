import { expect } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { initCluster, joinCluster } from '../../src/cluster/setup.ts'
import { databaseFile, openWritable } from '../../src/db/open.ts'
import { eventually } from './app.ts'
import { binary, command, makeAccount, Service, type Settings, unlimited } from './binary.ts'
import { fillDataFolder } from './data-folder.ts'
import { firstDifference } from './database.ts'
import { temporaryFolder } from './folder.ts'
import { PostgresServer } from './postgres.ts'
import { TcpProxy } from './tcp-proxy.ts'

/** Several hosts as processes, each with a proxy of its own to one PostgreSQL. */

const BASE_URL = 'http://hop.test'

interface ClusterOptions {
  /** Number of hosts. */
  hosts?: number
  /** Settings of each start. */
  env?: () => Settings
  /** Another build than the run's own. */
  program?: string
  /** A server that the test shares between clusters. */
  postgres?: PostgresServer
}

/** Comparisons of hosts before a difference counts. */
const LOOKS = 3

export class TestCluster implements AsyncDisposable {
  readonly hosts: TestHost[] = []
  readonly postgres: PostgresServer
  readonly database: string
  /** Of an Enterprise account. */
  key = ''
  readonly #folder = temporaryFolder()
  readonly #ownsPostgres: boolean

  private constructor(postgres: PostgresServer, database: string, ownsPostgres: boolean) {
    this.postgres = postgres
    this.database = database
    this.#ownsPostgres = ownsPostgres
  }

  /** All hosts serve when this resolves. */
  static async start(options: ClusterOptions = {}): Promise<TestCluster> {
    const postgres = options.postgres ?? (await PostgresServer.start())
    const database = await postgres.createDatabase()
    const cluster = new TestCluster(postgres, database, options.postgres === undefined)
    try {
      await cluster.#addHosts(options)
      await Promise.all(cluster.hosts.map((host) => host.start()))
      await cluster.ready()
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
    return cluster
  }

  host(at: number): TestHost {
    const host = this.hosts[at]
    if (!host) throw new Error(`there is no host ${at}`)
    return host
  }

  /** Resolves when every host says that it is ready. */
  async ready(): Promise<void> {
    let states: string[] = []
    const areReady = async () => {
      const answers = await Promise.all(
        this.hosts.map((host) => host.fetch('/-/ready').catch((error: Error) => error)),
      )
      const texts = answers.map((one) => (one instanceof Error ? one.message : one.text()))
      states = await Promise.all(texts)
      return answers.every((answer) => !(answer instanceof Error) && answer.ok)
    }
    await eventually('every host is ready', areReady).catch(async (error: Error) => {
      const hosts = await this.postgres.run(
        (sql) => sql`SELECT * FROM hopcode.hosts`,
        this.database,
      )
      throw new Error(`${error.message}: ${states.join('; ')}; ${JSON.stringify([...hosts])}`)
    })
  }

  /**
   * Resolves when nothing is on its way: every host has applied the whole log, and no hit waits to
   * be counted. Nobody may send requests meanwhile.
   */
  async rest(): Promise<void> {
    await this.ready()
    await eventually('all hosts have applied the log', async () => {
      for (const host of this.hosts) {
        if ((await host.metric('hopcode_hits_pending')) !== 0) return false
      }
      return this.#isApplied()
    })
  }

  /**
   * The first row that two hosts do not have in common; undefined if all are equal. Details of
   * visits may be on their way from a host to the log while two databases are read, so only a
   * difference that stays counts.
   */
  async difference(): Promise<string | undefined> {
    for (let looks = 1; ; looks++) {
      const found = this.#differenceNow()
      if (!found || looks === LOOKS) return found
      await this.rest()
    }
  }

  #differenceNow(): string | undefined {
    const [first, ...others] = this.hosts.map(({ dataDir }) => databaseFile(dataDir))
    for (const other of others) {
      const found = firstDifference(first as string, other)
      if (found) return found
    }
    return undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const host of this.hosts) await host[Symbol.asyncDispose]()
    if (this.#ownsPostgres) await this.postgres[Symbol.asyncDispose]()
    else await this.postgres.run((sql) => sql.unsafe(`DROP DATABASE ${this.database} WITH (FORCE)`))
    this.#folder[Symbol.dispose]()
  }

  async #isApplied(): Promise<boolean> {
    const [row] = await this.postgres.run(
      (sql) => sql`
        SELECT (SELECT seq FROM hopcode.cluster) = ALL (SELECT applied FROM hopcode.hosts) AS same`,
      this.database,
    )
    return row.same
  }

  /** The first host has an account; the others start with a copy of its folder. */
  async #addHosts({ hosts = 3, env = () => ({}), program }: ClusterOptions): Promise<void> {
    const path = program ?? (await binary())
    for (let at = 0; at < hosts; at++) {
      const dataDir = join(this.#folder.path, `host-${at}`)
      mkdirSync(dataDir)
      const proxy = await TcpProxy.start(this.postgres.port)
      const clusterUrl = this.postgres.url(this.database, proxy.port)
      this.hosts.push(new TestHost({ dataDir, proxy, clusterUrl, env, program: path }))
      if (at === 0) {
        fillDataFolder(dataDir)
        this.key = await makeAccount({ DATA_DIR: dataDir, BASE_URL }, 'enterprise', path)
      } else copyFolder(this.host(0).dataDir, dataDir)
      const db = openWritable(databaseFile(dataDir))
      const name = `host-${at}`
      await (at === 0 ? initCluster : joinCluster)({ db, dataDir, clusterUrl, name, address: name })
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    }
  }
}

/** Of a stopped host. */
function copyFolder(from: string, to: string): void {
  for (const name of ['hopcode.db', 'secret.key']) copyFileSync(join(from, name), join(to, name))
}

interface HostOptions {
  dataDir: string
  proxy: TcpProxy
  clusterUrl: string
  env: () => Settings
  program: string
}

export class TestHost implements AsyncDisposable {
  readonly dataDir: string
  /** Between this host and PostgreSQL. */
  readonly proxy: TcpProxy
  readonly clusterUrl: string
  readonly #env: () => Settings
  readonly #program: string
  #service: Service | undefined

  constructor({ dataDir, proxy, clusterUrl, env, program }: HostOptions) {
    this.dataDir = dataDir
    this.proxy = proxy
    this.clusterUrl = clusterUrl
    this.#env = env
    this.#program = program
  }

  get id(): string {
    return readFileSync(join(this.dataDir, 'host.id'), 'utf8').trim()
  }

  get settings(): Settings {
    // Tests wait until hits are counted.
    const own = { BASE_URL, CLUSTER_URL: this.clusterUrl, HIT_FLUSH_MS: '100' }
    return Object.assign(unlimited(this.dataDir), own, this.#env())
  }

  get service(): Service {
    if (!this.#service) throw new Error('the host does not run')
    return this.#service
  }

  /** Undefined while it does not run. */
  get url(): string | undefined {
    return this.#service?.url
  }

  /** Resolves when it is ready, which needs PostgreSQL. `program`: another build for this start. */
  async start(program = this.#program): Promise<void> {
    this.#service = await Service.start(this.settings, [], program)
  }

  async kill(): Promise<void> {
    const service = this.#service
    this.#service = undefined
    await service?.end('SIGKILL')
  }

  async stop(): Promise<number | string> {
    const { service } = this
    this.#service = undefined
    return service.end('SIGTERM')
  }

  pause(): void {
    process.kill(this.service.pid, 'SIGSTOP')
  }

  /** It may have been killed meanwhile. */
  resume(): void {
    if (this.#service) process.kill(this.#service.pid, 'SIGCONT')
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return this.service.fetch(path, init)
  }

  async metric(name: string): Promise<number> {
    const text = await (await this.fetch('/-/metrics')).text()
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
    if (found === undefined) throw new Error(`there is no metric ${name}`)
    return Number(found)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await this.proxy[Symbol.asyncDispose]()
  }
}

/** Data folders on which tests run the commands of a cluster. */

/** Data folders whose settings lead to one cluster of their own. */
export async function newFolders(server: PostgresServer) {
  const clusterUrl = server.url(await server.createDatabase())
  const folder = temporaryFolder()
  const settings = (name: string, more: Settings = {}): Settings =>
    Object.assign(
      unlimited(join(folder.path, name)),
      { BASE_URL: 'http://hop.test', CLUSTER_URL: clusterUrl },
      more,
    )
  return { folder, settings, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** Runs a command that must succeed. Returns what it prints. */
export async function run(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, err]).toEqual([args, 0, err])
  return out
}

export async function refusal(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, out]).toEqual([args, 1, ''])
  // One line, without credentials.
  expect(err.trim().split('\n')).toHaveLength(1)
  expect(err).not.toContain('postgres://')
  return err
}

/** The second host is a copy of the first. */
export async function joinFrom(from: Settings, to: Settings): Promise<void> {
  const file = join(from.DATA_DIR ?? '', 'for-join.hopcode')
  await run(`backup --for-join ${file}`, from)
  await run(`cluster join ${file}`, to)
  rmSync(file)
}

export const rowsOf = async (env: Settings) =>
  JSON.parse((await command(['cluster', 'status', '--json'], env)).out) as {
    ok: boolean
    entry: number
    hosts: { id: string; name: string; live: boolean; applied: number; this_host: boolean }[]
  }
