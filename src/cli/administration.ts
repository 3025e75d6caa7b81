import type { Database } from 'bun:sqlite'
import { accessSync, constants } from 'node:fs'
import type { KeyDeps } from '../accounts/keys.ts'
import { DomainMap } from '../addresses/map.ts'
import type { ResolveDeps } from '../addresses/resolve.ts'
import { PublicUrls } from '../addresses/urls.ts'
import type { CertificateSource } from '../certificates/status.ts'
import { loggedFunctions } from '../cluster/apply.ts'
import { applyLog } from '../cluster/catch-up.ts'
import { hostIdOf } from '../cluster/host-id.ts'
import { PostgresLog } from '../cluster/log.ts'
import { findLogPosition } from '../cluster/position.ts'
import { requireSameMode } from '../cluster/setup.ts'
import { SharedOrder } from '../cluster/shared-order.ts'
import type { Config } from '../config.ts'
import { type Data, subjects } from '../data.ts'
import { createDataFolder, openDataFolder, requireDatabase } from '../data-folder.ts'
import type { Author } from '../db/author.ts'
import { FolderLock, readHolder } from '../db/lock.ts'
import { inTransaction } from '../db/open.ts'
import { openSubjects, scanFunctions, writeFunctions } from '../db/subject.ts'
import type { Decider, Order } from '../db/writer.ts'
import { wallClock } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { print } from '../lib/log.ts'
import { secureRandom } from '../lib/random.ts'
import { type Caller, functionOf, type NamedFunctions } from '../lib/thread.ts'
import type { Link } from '../links/link.ts'
import { MaintenanceMode } from '../maintenance/mode.ts'
import { CommandError } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import type { Flag } from './options.ts'
import { type Calls, callService, type Functions, findService } from './socket.ts'

/**
 * What commands on the data use. While a service runs they run in it, so that one process writes
 * the database and changes take effect at once. Without one, they run in their own process.
 */
export interface Administration extends KeyDeps, ResolveDeps<Link> {
  data: Data
  writer: Pick<Decider, 'catchUp'>
  maintenance: MaintenanceMode
  /** Absent without https, and while no service runs. */
  certificates?: CertificateSource | undefined
  /** Address of the service, without a slash at its end. */
  baseUrl: string
}

/** Goes with changes of what belongs to no account. */
export const operatorOf = ({ clock }: Pick<KeyDeps, 'clock'>): Author => ({
  accountId: 0,
  by: 'operator',
  now: clock(),
})

/** How long a command waits for a service that starts or stops. */
const WAIT_MS = 12_000
const RETRY_MS = 50

interface CommandOptions {
  /** Creates the data folder if it is missing. */
  creates?: boolean
}

/** Runs one of the functions, and prints what it returns. */
export const printing =
  <Commands extends Functions<Administration>>(commands: Commands) =>
  async <Name extends keyof Commands & string>(
    name: Name,
    args: Parameters<Calls<Commands>[Name]>[0],
    options: CommandOptions = {},
  ): Promise<void> => {
    await using administration = await administer(commands, options)
    print(String(await administration.call(name, args)))
  }

/** A part of a long list, so that the service answers other requests meanwhile. */
export interface Page {
  text: string
  /** Where the next page begins. Absent for the last one. */
  next?: number | undefined
}

export const PAGE = 1000

export interface PageOptions {
  json?: Flag
  /** See `Page`. Absent for the first page. */
  after?: number
}

/** Prints a list. */
export async function printPages<Name extends string>(
  commands: Record<Name, (deps: Administration, args: PageOptions) => Page>,
  name: Name,
  { json }: PageOptions,
): Promise<void> {
  await using administration = await administer(commands)
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Page = await administration.call(name, { json, after })
    if (page.text !== '') print(page.text)
    after = page.next
  }
}

/** Throws CommandError and DataError. */
export async function administer<Commands extends Functions<Administration>>(
  commands: Commands,
  { creates = false }: CommandOptions = {},
): Promise<Caller<Calls<Commands>> & AsyncDisposable> {
  const config = readConfigOfFolder()
  const { dataDir } = config
  if (creates) createDataFolder(dataDir)
  requireAccess(dataDir)
  if (!creates) requireDatabase(dataDir)
  const deadline = performance.now() + WAIT_MS
  do {
    const service = await findService(dataDir)
    if (service) {
      const call = (name: string, args: unknown) => callService(service, name, args)
      return { call: call as never, async [Symbol.asyncDispose]() {} }
    }
    const lock = FolderLock.tryClaim(dataDir)
    if (lock) return openFolder(config, lock, commands)
    await Bun.sleep(RETRY_MS)
  } while (performance.now() < deadline)
  throw new CommandError(
    `Process ${readHolder(dataDir)} uses ${dataDir} and accepts no commands: it is starting or ` +
      'stopping, or its log says why. Nothing is changed.',
  )
}

function requireAccess(dataDir: string): void {
  const { R_OK, W_OK, X_OK } = constants
  try {
    accessSync(dataDir, R_OK | W_OK | X_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') return
    throw new CommandError(
      `This user may not write to ${dataDir}: run the command as the user of the service.`,
    )
  }
}

/** `lock`: released with the result. */
async function openFolder<Commands extends Functions<Administration>>(
  config: Config,
  lock: FolderLock,
  commands: Commands,
): Promise<Caller<Calls<Commands>> & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  opened.use(lock)
  const { db, hasher } = openDataFolder(config.dataDir)
  opened.defer(() => db.close())
  const writer = new FolderWriter(db, config)
  opened.use(writer)
  const data = openSubjects(subjects, {
    db,
    callReader: (name, args) =>
      Promise.resolve(functionOf(scanFunctions(subjects, db), name)(args)),
    callWriter: (name, args) => writer.call(name, args),
    // This process has no caches.
    readers: [],
  })
  // One command runs: it reads them once.
  const domains = new DomainMap(db, { all: 0 }, config)
  const deps: Administration = {
    hasher,
    writer,
    data,
    addresses: new PublicUrls({ ...config, domains }),
    maintenance: new MaintenanceMode(data.settings, wallClock),
    baseUrl: config.baseUrl,
    clock: wallClock,
    random: secureRandom,
  }
  const call = async (name: string, args: unknown) => commands[name]?.(deps, args as never)
  const owned = opened.move()
  return { call: call as never, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Writes the database while no service runs; on a host of a cluster, through its log. */
class FolderWriter implements AsyncDisposable {
  readonly #db: Database
  readonly #config: Config
  #functions: NamedFunctions | undefined
  #log: Promise<Order> | undefined

  constructor(db: Database, config: Config) {
    this.#db = db
    this.#config = config
  }

  async call(name: string, args: unknown): Promise<unknown> {
    const log = await this.#openLog()
    if (!log) {
      this.#functions ??= writeFunctions(subjects, this.#db, { id: '' })
      const run = functionOf(this.#functions, name)
      return inTransaction(this.#db, () => run(args))
    }
    const [outcome] = await log.submit([{ name, args }])
    if (outcome && 'value' in outcome) return outcome.value
    throw new DataError(outcome?.error ?? 'The change has no result.')
  }

  /** A command must decide on the newest data. Throws DataError if PostgreSQL does not answer. */
  async catchUp(): Promise<void> {
    await this.#openLog()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#log?.catch(() => undefined))?.close()
  }

  /** Not before it is needed: commands that only read work without PostgreSQL. */
  async #openLog(): Promise<Order | undefined> {
    if (findLogPosition(this.#db)) this.#log ??= openLog(this.#db, this.#config)
    return this.#log
  }
}

/** Applies the whole log. Throws DataError. */
async function openLog(db: Database, { dataDir, clusterUrl }: Config): Promise<Order> {
  requireSameMode(db, dataDir, clusterUrl)
  const host = hostIdOf(dataDir)
  const functions = loggedFunctions(db, { id: host })
  const boot = crypto.randomUUID()
  const folder = { db, url: clusterUrl ?? '', host, functions, boot }
  await applyLog(folder)
  const order: SharedOrder = new SharedOrder({
    ...folder,
    log: new PostgresLog(folder),
    compares: false,
    prepare: (call) => ({ call, toResult: (outcome) => outcome }),
    // This process has no caches.
    onApplied: ({ seq }) => order.confirm(seq),
    onState() {},
  })
  return order
}
