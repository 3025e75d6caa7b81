import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { temporaryFolder } from './folder.ts'
import { freePort } from './ports.ts'

/** A PostgreSQL of a test's own, in a temporary folder and on a free port of 127.0.0.1. */

const USER = 'hopcode'
const START_TRIES = 5
/** Crash recovery is part of a start. */
const START_MS = 60_000

interface PostgresOptions {
  /** Settings of postgresql.conf. Default: those of PostgreSQL, so commits are durable. */
  settings?: Record<string, string>
  /** For data that a benchmark or many short tests can lose: `fsync=off`. */
  isVolatile?: boolean
  /** Offers TLS with this certificate. */
  tls?: Certificate
}

/** In PEM. */
interface Certificate {
  certificate: string
  key: string
}

const VOLATILE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

export class PostgresServer implements AsyncDisposable {
  readonly port = freePort()
  readonly #password = randomBytes(12).toString('hex')
  readonly #folder = temporaryFolder()
  readonly #settings: Record<string, string>
  readonly #tls: Certificate | undefined
  readonly #wrap = otherUser(this.#folder.path)
  #child: Bun.Subprocess | undefined
  #databases = 0

  private constructor({ settings = {}, isVolatile = false, tls }: PostgresOptions) {
    this.#settings = Object.assign({}, isVolatile && VOLATILE, tls && { ssl: 'on' }, settings)
    this.#tls = tls
  }

  /** Throws without the programs of PostgreSQL: see `testWith('postgres')`. */
  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(options)
    try {
      server.#createData()
      await server.restart()
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
    return server
  }

  url(database = 'postgres', port = this.port): string {
    return `postgres://${USER}:${this.#password}@127.0.0.1:${port}/${database}`
  }

  /** A new empty database; returns its name. */
  async createDatabase(): Promise<string> {
    const name = `test_${++this.#databases}`
    await this.run((sql) => sql.unsafe(`CREATE DATABASE ${name}`))
    return name
  }

  /** Runs statements on a connection of their own. */
  async run<Result>(work: (sql: SQL) => Promise<Result>, database?: string): Promise<Result> {
    const sql = new SQL(this.url(database), { max: 1, connectionTimeout: 5 })
    try {
      return await work(sql)
    } finally {
      await sql.close({ timeout: 0 }).catch(() => {})
    }
  }

  /** Starts it again after `stop` or `kill`, on the same port. Resolves once it answers. */
  async restart(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const child = this.#spawn()
      this.#child = child
      const deadline = performance.now() + START_MS
      while (child.exitCode === null && performance.now() < deadline) {
        if (await this.run((sql) => sql`SELECT 1`).catch(() => undefined)) return
        await Bun.sleep(20)
      }
      // Processes of the killed one may still end.
      if (tries === START_TRIES || child.exitCode === null) break
      await Bun.sleep(100 * tries)
    }
    throw new Error(`PostgreSQL did not start: ${this.log.slice(-2000)}`)
  }

  /** Ends all connections and stops. */
  async stop(): Promise<void> {
    this.#child?.kill('SIGINT')
    await this.#child?.exited
  }

  /** kill -9 of all its processes. */
  async kill(): Promise<void> {
    for (const pid of this.#pids()) signal(pid, 'SIGKILL')
    await this.#child?.exited
  }

  /** Stops all its processes, which keep their connections and locks. */
  pause(): void {
    for (const pid of this.#pids()) signal(pid, 'SIGSTOP')
  }

  resume(): void {
    for (const pid of this.#pids()) signal(pid, 'SIGCONT')
  }

  get log(): string {
    const file = join(this.#folder.path, 'log')
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    this.#folder[Symbol.dispose]()
  }

  /** The postmaster first, so that it starts no further ones. */
  #pids(): number[] {
    const { pid, exitCode, signalCode } = this.#child ?? {}
    if (pid === undefined || exitCode !== null || signalCode !== null) return []
    const file = `/proc/${pid}/task/${pid}/children`
    const children = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : []
    return [pid, ...children.filter(Boolean).map(Number)]
  }

  #createData(): void {
    const passwordFile = join(this.#folder.path, 'password')
    writeFileSync(passwordFile, this.#password)
    const authentication = [
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
    ]
    const words = ['--no-sync', '--encoding=UTF8', '--locale=C', '-D', this.data]
    const ran = Bun.spawnSync([...this.#wrap, program('initdb'), ...authentication, ...words], {
      cwd: this.#folder.path,
    })
    if (ran.exitCode !== 0) throw new Error(`initdb: ${ran.stderr}`)
    if (this.#tls) {
      this.#writePrivate('server.crt', this.#tls.certificate)
      this.#writePrivate('server.key', this.#tls.key)
    }
  }

  #writePrivate(name: string, text: string): void {
    const file = join(this.data, name)
    writeFileSync(file, text, { mode: 0o600 })
    const { uid, gid } = statSync(this.data)
    chownSync(file, uid, gid)
  }

  #spawn(): Bun.Subprocess {
    const settings = Object.entries({
      listen_addresses: '127.0.0.1',
      port: String(this.port),
      unix_socket_directories: '',
      max_connections: '200',
      ...this.#settings,
    })
    const words = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const output = Bun.file(join(this.#folder.path, 'log'))
    return Bun.spawn([...this.#wrap, program('postgres'), '-D', this.data, ...words], {
      cwd: this.#folder.path,
      stdio: ['ignore', output, output],
    })
  }

  /** The folder with its files. */
  get data(): string {
    return join(this.#folder.path, 'data')
  }
}

/** The newest server of Debian's packages, which are not on the path, or another's. */
export function findPostgres(): string | undefined {
  const paths = [...new Bun.Glob('usr/lib/postgresql/*/bin/postgres').scanSync('/')]
  const newest = paths.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)
  if (newest !== undefined) return `/${newest}`
  const initdb = Bun.which('initdb')
  return initdb ? join(dirname(initdb), 'postgres') : undefined
}

const program = (name: string): string => join(dirname(findPostgres() ?? '/'), name)

/** The processes may have ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** PostgreSQL refuses to run as root: gives the folder to its user, and returns who runs it. */
function otherUser(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const [, , uid, gid] =
    /^postgres:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? []
  if (uid === undefined || gid === undefined) throw new Error('there is no user postgres')
  chownSync(folder, Number(uid), Number(gid))
  // It ends with the thread that started it, even if that is killed.
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--pdeathsig=KILL']
}
