import type { Database } from 'bun:sqlite'
import { SettingStore } from '../db/settings.ts'
import { type Authored, perConnection, rulesWrite, subject } from '../db/subject.ts'
import type { CodeVersions } from '../hot/code-versions.ts'
import { covers, HostSetBuilder, hostOf, type PackedHosts } from './match.ts'

/** Hosts that the owner of the service has blocked on a page, beside those of the files. */

export interface StoredHost {
  /** The host in the form of `hostOf`. */
  host: string
  reason: string
  blockedAt: number
}

/** Each thread keeps all of them in memory. Larger lists belong in files. */
export const STORED_HOSTS_MAX = 10_000

/** Changes with each write, so that a connection knows when to read the hosts again. */
const REVISION = 'blocked_hosts_revision'

/**
 * The host of a host name or a URL, in the form of `hostOf`. Undefined for a text that names none,
 * and for a name without a dot: it would block a whole top-level domain.
 */
export function parseHost(text: string): string | undefined {
  const bare = text.trim().replace(/^(\*\.|\.)/, '')
  const url = /^https?:\/\//i.test(bare) ? bare : `http://${bare}`
  if (!URL.canParse(url)) return undefined
  const host = hostOf(url)
  return host.startsWith('[') || host.includes('.') ? host : undefined
}

type Blocked = 'blocked' | 'too_many'

/** Once a write has resolved, no redirect follows the old hosts. */
export const blockedHosts = subject({
  reads(db) {
    const page = db.prepare<StoredHost, [number, number]>(
      `SELECT host, reason, blocked_at AS blockedAt FROM blocked_hosts
       ORDER BY blocked_at DESC, host LIMIT ? OFFSET ?`,
    )
    const total = hostCount(db)
    return {
      /** Newest first. `total` counts all pages. */
      list: ({ limit, offset }: { limit: number; offset: number }) => ({
        total: total(),
        items: page.all(limit, offset),
      }),
    }
  },

  writes: {
    /** Blocking a host again changes its reason. */
    block: rulesWrite('owner', (db) => {
      const total = hostCount(db)
      const isStored = db.prepare<{ host: string }, [string]>(
        'SELECT host FROM blocked_hosts WHERE host = ?',
      )
      const set = db.prepare<null, [string, string, number]>(
        `INSERT INTO blocked_hosts (host, reason, blocked_at) VALUES (?1, ?2, ?3)
         ON CONFLICT (host) DO UPDATE SET reason = ?2`,
      )
      const revise = reviser(db)
      return (command: Authored & Pick<StoredHost, 'host' | 'reason'>): Blocked => {
        const { author, host, reason } = command
        if (total() >= STORED_HOSTS_MAX && !isStored.get(host)) return 'too_many'
        set.run(host, reason, author.now)
        revise()
        return 'blocked'
      }
    }),

    /** False if the host is not blocked here. */
    unblock: rulesWrite('owner', (db) => {
      const remove = db.prepare<null, [string]>('DELETE FROM blocked_hosts WHERE host = ?')
      const revise = reviser(db)
      return ({ host }: Authored & { host: string }): boolean => {
        const isRemoved = remove.run(host).changes > 0
        if (isRemoved) revise()
        return isRemoved
      }
    }),
  },
})

const hostCount = perConnection((db) => {
  const count = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM blocked_hosts')
  return () => count.get()?.n ?? 0
})

const reviser = perConnection((db) => {
  const settings = new SettingStore(db)
  return () => settings.set(REVISION, String(Number(settings.findByName(REVISION) ?? 0) + 1))
})

/**
 * The blocked hosts as one connection sees them, kept in memory. `versions.all` tells whether they
 * may have changed, and the revision in the database whether they have.
 */
export class StoredHosts {
  readonly #settings: SettingStore
  readonly #versions: Pick<CodeVersions, 'all'>
  readonly #all
  #version: number | undefined
  #revision: string | undefined
  #packed: PackedHosts | undefined

  constructor(db: Database, versions: Pick<CodeVersions, 'all'>) {
    this.#settings = new SettingStore(db)
    this.#versions = versions
    this.#all = db.prepare<{ host: string }, []>('SELECT host FROM blocked_hosts')
  }

  /** `host`: in the form of `hostOf`. */
  cover(host: string): boolean {
    const version = this.#versions.all
    if (version !== this.#version) this.#update(version)
    return this.#packed !== undefined && covers(this.#packed, host)
  }

  #update(version: number): void {
    const revision = this.#settings.findByName(REVISION)
    if (revision !== this.#revision) {
      this.#packed = this.#read()
      this.#revision = revision
    }
    this.#version = version
  }

  #read(): PackedHosts | undefined {
    const rows = this.#all.all()
    if (rows.length === 0) return undefined
    const [seed = 0n] = crypto.getRandomValues(new BigUint64Array(1))
    const hosts = new HostSetBuilder(seed)
    for (const { host } of rows) hosts.add(host)
    return hosts.pack()
  }
}
