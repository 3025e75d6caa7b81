import { stat } from 'node:fs/promises'
import { type Clock, SECOND, wallClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, Thread } from '../lib/thread.ts'
import type { Loaded, LoaderCalls } from './load.ts'
import { canonicalHost, HostSet, hostOf } from './match.ts'
import type { OwnAddress } from './own-address.ts'
import type { HostList } from './parse.ts'

interface BlocklistOptions {
  files: readonly string[]
  /**
   * Our own hosts, as URLs (`BASE_URL`, `CDN_URL`) or bare hosts: blocked on every port and scheme.
   */
  ownHosts: readonly string[]
  /** Where the service itself listens; absent: nowhere. */
  ownAddress?: Pick<OwnAddress, 'isOwn'>
  log: Log
  /** The module of the thread that reads the files: `threads/blocklist.ts`. */
  thread: URL
  /** How often the files are looked at. */
  intervalMs?: number
  clock?: Clock
}

interface BlocklistFileState {
  file: string
  /** Hosts of the set in force, which may be older than the file. */
  entries: number
  /** When the set in force was read; null before the first. */
  loadedAt: number | null
  /** Why the file as it stands now is not in force; null when it is. */
  error: string | null
}

export interface BlocklistState {
  entries: number
  /** When a file was last read with success; null before the first. */
  loadedAt: number | null
  files: readonly BlocklistFileState[]
}

interface Watched extends BlocklistFileState {
  blocked: HostSet | undefined
  exempt: HostSet | undefined
  /** What the file's version was at the last look, and when it was last tried. */
  seen: string
  version: string
  /** The version and the error last logged: each is said once. */
  reported: string
  /** Reading failed for a reason that may pass without the file changing. */
  retry: boolean
}

/**
 * The hosts that no link may lead to. Each file is its own set, read anew on a thread when it
 * changes; a file that is missing or broken leaves its last good set in force and says so in the
 * log.
 */
export class Blocklist {
  readonly #options: Required<BlocklistOptions>
  readonly #ownHosts: ReadonlySet<string>
  readonly #files: readonly Watched[]
  #timer: ReturnType<typeof setTimeout> | undefined
  #turn: Promise<void> = Promise.resolve()
  #isClosed = false
  #version = 0

  private constructor(options: BlocklistOptions) {
    this.#options = { intervalMs: SECOND, clock: wallClock, ownAddress: NOWHERE, ...options }
    this.#ownHosts = new Set(options.ownHosts.map(ownHostOf))
    this.#files = [...new Set(options.files)].map((file) => ({
      file,
      entries: 0,
      loadedAt: null,
      error: null,
      blocked: undefined,
      exempt: undefined,
      seen: '',
      version: '',
      reported: '',
      retry: false,
    }))
  }

  /** Resolves when every file has been tried once; a file that fails does not stop the start. */
  static async open(options: BlocklistOptions): Promise<Blocklist> {
    const blocklist = new Blocklist(options)
    if (options.files.length > 0) {
      await blocklist.reload()
      blocklist.#watch()
    }
    return blocklist
  }

  /**
   * Whether the host of a URL, or a domain that it lies under, is blocked. `href` and `host` are
   * those of a `URL`.
   */
  isBlocked({ href, host: hostAndPort }: Pick<URL, 'href' | 'host'>): boolean {
    const port = /:(\d+)$/.exec(hostAndPort)?.[1] ?? ''
    const hostname = port === '' ? hostAndPort : hostAndPort.slice(0, -port.length - 1)
    const host = canonicalHost(hostname)
    const protocol = href.slice(0, href.indexOf(':') + 1)
    if (this.#isOurs(host) || this.#options.ownAddress.isOwn(host, { port, protocol })) return true
    return this.#files.some((list) => isListed(list, host))
  }

  /** Differs after every list that was loaded. */
  get version(): number {
    return this.#version
  }

  state(): BlocklistState {
    const files = this.#files.map(({ file, entries, loadedAt, error }) => ({
      file,
      entries,
      loadedAt,
      error,
    }))
    const times = files.flatMap(({ loadedAt }) => loadedAt ?? [])
    return {
      entries: files.reduce((sum, { entries }) => sum + entries, 0),
      loadedAt: times.length === 0 ? null : Math.max(...times),
      files,
    }
  }

  /** Reads every file again, changed or not. Never rejects for a file's sake: see `state`. */
  reload(): Promise<void> {
    return this.#inTurn({ force: true })
  }

  /**
   * What happens at every interval: reads the files that have changed, each once two looks have
   * found it alike, because one that is just being written would be half a list.
   */
  look(): Promise<void> {
    return this.#inTurn({ force: false })
  }

  /** Ends the watching once a reading under way has finished; the sets stay in force. */
  close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    return this.#turn
  }

  /**
   * Only the very host, not what lies under it: the operator's other sites may. `localhost` is all
   * loopback.
   */
  #isOurs(host: string): boolean {
    if (this.#ownHosts.has(host)) return true
    return host.endsWith('.localhost') && this.#ownHosts.has('localhost')
  }

  #watch(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(async () => {
      await this.look()
      this.#watch()
    }, this.#options.intervalMs)
    this.#timer.unref()
  }

  #inTurn(options: { force: boolean }): Promise<void> {
    this.#turn = this.#turn.then(() => this.#refresh(options))
    return this.#turn
  }

  async #refresh({ force }: { force: boolean }): Promise<void> {
    if (this.#isClosed) return
    const due: Watched[] = []
    for (const list of this.#files) {
      const { version, error } = await lookAt(list.file)
      const hasSettled = version === list.seen
      list.seen = version
      if (!force && !list.retry && !(hasSettled && version !== list.version)) continue
      list.version = version
      if (error === undefined) due.push(list)
      else this.#keep(list, error, { retry: false })
    }
    if (due.length > 0) await this.#load(due)
  }

  /** The thread ends with the loading, and its memory with it. */
  async #load(due: readonly Watched[]): Promise<void> {
    let thread: Thread<LoaderCalls> | undefined
    for (const list of due) {
      try {
        if (!thread || thread.isDead) thread = await this.#startThread()
        this.#take(list, await thread.call('load', { file: list.file }))
      } catch (error) {
        this.#keep(list, `cannot be read: ${messageOf(error)}`, { retry: true })
      }
    }
    await thread?.close()
  }

  #startThread(): Promise<Thread<LoaderCalls>> {
    return Thread.start(new Worker(this.#options.thread), null, { batchMax: 1, queueMax: 1 })
  }

  #take(list: Watched, loaded: Loaded): void {
    if ('refused' in loaded) {
      this.#keep(list, loaded.refused, { retry: false })
      return
    }
    Object.assign(list, setsOf(loaded.list))
    this.#version++
    list.loadedAt = this.#options.clock()
    list.error = null
    list.reported = ''
    list.retry = false
    const { file, entries } = list
    const { unknownLines } = loaded.list
    this.#options.log.info('blocklist.file_loaded', { file, entries, unknown_lines: unknownLines })
  }

  #keep(list: Watched, error: string, { retry }: { retry: boolean }): void {
    list.retry = retry
    list.error = error
    const report = `${list.version} ${error}`
    if (list.reported === report) return
    list.reported = report
    const { file, entries } = list
    this.#options.log.error('blocklist.file_failed', { file, reason: error, entries_kept: entries })
  }
}

const NOWHERE = { isOwn: () => false }

function ownHostOf(text: string): string {
  return text.includes('://') ? hostOf(text) : hostOf(`http://${text}`)
}

function setsOf({ blocked, exempt }: HostList) {
  return {
    entries: blocked.size,
    blocked: new HostSet(blocked),
    exempt: exempt.size > 0 ? new HostSet(exempt) : undefined,
  }
}

function isListed({ blocked, exempt }: Watched, host: string): boolean {
  return blocked?.covers(host) === true && exempt?.covers(host) !== true
}

/**
 * The version changes with any write, replacement or change of rights. A FIFO would block its
 * reader: refused.
 */
async function lookAt(file: string): Promise<{ version: string; error?: string }> {
  try {
    const found = await stat(file, { bigint: true })
    if (!found.isFile()) return { version: 'no file', error: 'is not a regular file' }
    const { dev, ino, size, mtimeNs, ctimeNs } = found
    return { version: [dev, ino, size, mtimeNs, ctimeNs].join(' ') }
  } catch (error) {
    const reason = messageOf(error)
    return { version: reason, error: `cannot be read: ${reason}` }
  }
}
