import { stat } from 'node:fs/promises'
import type { DomainMap } from '../addresses/map.ts'
import { AppError } from '../errors.ts'
import { type Clock, SECOND, wallClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, Thread } from '../lib/thread.ts'
import { BlockedHosts, type BlockedLists } from './blocked-hosts.ts'
import type { Loaded, LoaderCalls } from './load.ts'
import type { OwnAddress } from './own-address.ts'
import type { StoredHosts } from './stored-hosts.ts'

interface BlocklistOptions extends Pick<BlockedLists, 'ownHosts'> {
  files: readonly string[]
  /** The addresses on which the service listens; absent: none. */
  ownAddress?: Pick<OwnAddress, 'isOwn'>
  /** The hosts that the owner has blocked; absent: none. */
  stored?: Pick<StoredHosts, 'cover'>
  /** The domains of short links; absent: none. */
  domains?: Pick<DomainMap, 'findByHost'>
  /** The lists have changed since `open`. */
  onChange?: () => void
  log: Log
  /** The module of the thread that reads the files: `threads/blocklist.ts`. */
  thread: URL
  /** Time between two checks of the files. */
  intervalMs?: number
  clock?: Clock
}

interface Watched {
  file: string
  /** Hosts of the active set, which may be older than the file. */
  entries: number
  /** When the active set was read; null before the first. */
  loadedAt: number | null
  /** Why the current file is not active; null if it is. */
  error: string | null
  packed: BlockedLists['lists'][number] | undefined
  /** The file's version at the last check, and at the last attempt to load it. */
  seen: string
  version: string
  /** The version and the error last logged: each pair is logged once. */
  reported: string
  /** Loading failed for a reason that may go away although the file does not change. */
  retry: boolean
}

/**
 * The hosts that are refused as destinations. Each file is a set of its own, which a thread reads
 * again when the file changes. If a file is missing or broken, its last good set stays active, and
 * it is logged.
 */
export class Blocklist {
  readonly #options: Required<BlocklistOptions>
  readonly #files: readonly Watched[]
  #timer: Timer | undefined
  #refreshing: Promise<void> = Promise.resolve()
  #isClosed = false
  #blocked: BlockedHosts

  private constructor(options: BlocklistOptions) {
    this.#options = {
      intervalMs: SECOND,
      clock: wallClock,
      ownAddress: { isOwn: () => false },
      stored: { cover: () => false },
      domains: { findByHost: () => undefined },
      onChange() {},
      ...options,
    }
    this.#files = [...new Set(options.files)].map((file) => ({
      file,
      entries: 0,
      loadedAt: null,
      error: null,
      packed: undefined,
      seen: '',
      version: '',
      reported: '',
      retry: false,
    }))
    this.#blocked = new BlockedHosts(this.lists, this.#options)
  }

  /** Resolves when each file has been tried once. A file that fails does not prevent the start. */
  static async open(options: BlocklistOptions): Promise<Blocklist> {
    const blocklist = new Blocklist(options)
    if (options.files.length > 0) {
      await blocklist.reload()
      blocklist.#watch()
    }
    return blocklist
  }

  isBlocked(url: Pick<URL, 'href' | 'host'>): boolean {
    return this.#blocked.isBlocked(url)
  }

  /** Whether the URL is one of this service itself. */
  isOwn(url: Pick<URL, 'href' | 'host'>): boolean {
    return this.#blocked.isOwn(url)
  }

  /** The error with which a new destination is refused, if it is. */
  refusalOf(url: Pick<URL, 'href' | 'host'>): AppError | undefined {
    if (!this.isBlocked(url)) return undefined
    if (!this.isOwn(url)) return new AppError('url_blocked')
    this.#options.log.info('destination.own_host', { host: url.host })
    return new AppError('own_host')
  }

  /** The active lists, for the blocked hosts of other threads. */
  get lists(): BlockedLists {
    const lists = this.#files.flatMap(({ packed }) => packed ?? [])
    return { ownHosts: this.#options.ownHosts, lists }
  }

  /** `loadedAt`: when a file was last read with success; null before the first. */
  state() {
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

  /** Reads every file again, changed or not. Does not reject when a file fails: see `state`. */
  reload(): Promise<void> {
    return this.#enqueue({ force: true })
  }

  /**
   * Runs at every interval. Reads a file that has changed once two checks in a row have found the
   * same version: a file that is still being written would be an incomplete list.
   */
  checkFiles(): Promise<void> {
    return this.#enqueue({ force: false })
  }

  /** Resolves when a load in progress has finished. The sets stay active. */
  close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    return this.#refreshing
  }

  #watch(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(async () => {
      const before = this.#blocked
      await this.checkFiles()
      if (this.#blocked !== before) this.#options.onChange()
      this.#watch()
    }, this.#options.intervalMs).unref()
  }

  #enqueue(options: { force: boolean }): Promise<void> {
    this.#refreshing = this.#refreshing.then(() => this.#refresh(options))
    return this.#refreshing
  }

  async #refresh({ force }: { force: boolean }): Promise<void> {
    if (this.#isClosed) return
    const due: Watched[] = []
    for (const list of this.#files) {
      const { version, error } = await versionOf(list.file)
      const hasSettled = version === list.seen
      list.seen = version
      if (!force && !list.retry && !(hasSettled && version !== list.version)) continue
      list.version = version
      if (error === undefined) due.push(list)
      else this.#keep(list, error, { retry: false })
    }
    if (due.length > 0) await this.#load(due)
  }

  /** The thread ends after the load, which frees its memory. */
  async #load(due: readonly Watched[]): Promise<void> {
    let thread: Thread<LoaderCalls> | undefined
    for (const list of due) {
      try {
        if (!thread || thread.isDead) {
          const worker = new Worker(this.#options.thread)
          thread = await Thread.start<LoaderCalls>(worker, null, { batchMax: 1, queueMax: 1 })
        }
        this.#install(list, await thread.call('load', { file: list.file }))
      } catch (error) {
        this.#keep(list, `cannot be read: ${messageOf(error)}`, { retry: true })
      }
    }
    await thread?.close()
  }

  #install(list: Watched, loaded: Loaded): void {
    if ('refused' in loaded) {
      this.#keep(list, loaded.refused, { retry: false })
      return
    }
    list.entries = loaded.blocked.size
    list.packed = { blocked: loaded.blocked, exempt: loaded.exempt }
    this.#blocked = new BlockedHosts(this.lists, this.#options)
    list.loadedAt = this.#options.clock()
    list.error = null
    list.reported = ''
    list.retry = false
    this.#options.log.info('blocklist.file_loaded', {
      file: list.file,
      entries: list.entries,
      unknown_lines: loaded.unknownLines,
    })
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

/**
 * A version that changes with every write, replacement or change of rights. Only regular files: a
 * FIFO would block the thread.
 */
async function versionOf(file: string): Promise<{ version: string; error?: string }> {
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
