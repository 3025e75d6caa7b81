import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type Authored, authoredWrite, rulesWrite, scan, subject } from '../db/subject.ts'
import { domainCell } from './address.ts'
import { domainUses, MAY_USE } from './use.ts'

/**
 * Domains beside the primary one, which is the host of `BASE_URL`. A domain is a property of links
 * and a namespace of aliases. Codes are unique across all domains, and the primary one answers all.
 */

export const DOMAINS_MAX = 50

export interface DomainFields {
  /** See `canonicalHost`. */
  host: string
  /** Who may use it for links: owners of the service, all accounts, or the one of `accountId`. */
  access: 'owners' | 'all' | 'account'
  accountId: AccountId | null
  /** Which codes it answers: those of its own links, or all. */
  codes: 'own' | 'all'
  /** Where visitors of `/` are redirected. */
  rootUrl: string | null
  /** Where a browser that opens an unknown path is redirected; null: NOT_FOUND_URL. */
  notFoundUrl: string | null
}

export interface Domain extends DomainFields {
  /** Counts up and is never given out again. */
  id: number
  createdAt: number
}

export interface DomainUses {
  links: number
  aliases: number
}

const COLUMNS = `id, host, account_id AS accountId, access, codes, root_url AS rootUrl,
  not_found_url AS notFoundUrl, created_at AS createdAt`

/** Reads on any thread. */
export class DomainReads {
  readonly #all
  readonly #usable
  readonly #uses
  readonly #conflicts
  /** The domain of new links. */
  readonly defaultOf: (accountId: AccountId) => number
  /** Whether there was ever a domain. */
  readonly wereAdded: () => boolean

  constructor(db: Database) {
    this.#all = db.prepare<Domain, []>(`SELECT ${COLUMNS} FROM domains ORDER BY host`)
    this.#usable = db.prepare<Domain, [AccountId]>(
      `SELECT ${COLUMNS} FROM domains WHERE ${MAY_USE} ORDER BY host`,
    )
    this.#uses = db.prepare<DomainUses, [number]>(
      `SELECT (SELECT count(*) FROM links WHERE domain_id = ?1) AS links,
         (SELECT count(*) FROM aliases WHERE domain_id = ?1) AS aliases`,
    )
    this.#conflicts = db.prepare<{ path: string }, [number]>(
      `SELECT path FROM aliases AS own WHERE domain_id = ? AND EXISTS (
         SELECT 1 FROM aliases AS other INDEXED BY aliases_small
         WHERE other.domain_id = 0 AND other.small_path = own.small_path
           AND (other.path = own.path OR other.any_case = 1 OR own.any_case = 1))
       ORDER BY path LIMIT 20`,
    )
    const sequence = db.prepare<object, []>(`SELECT 1 FROM sqlite_sequence WHERE name = 'domains'`)
    this.wereAdded = () => sequence.get() !== null
    this.defaultOf = domainUses(db).defaultOf
  }

  list(): Domain[] {
    return this.#all.all()
  }

  /** Those that an account may use. */
  listFor(accountId: AccountId): Domain[] {
    return this.#usable.all(accountId)
  }

  findByHost(host: string): Domain | undefined {
    return this.list().find((domain) => domain.host === host)
  }

  usesOf(id: number): DomainUses {
    return this.#uses.get(id) ?? { links: 0, aliases: 0 }
  }

  /** Aliases that the primary domain has too, at most 20. */
  conflictsOf(id: number): string[] {
    return this.#conflicts.all(id).map(({ path }) => path)
  }
}

/** Once a write has resolved, redirects on every thread and host follow it. */
export const domains = subject({
  reads: (db): DomainReads => new DomainReads(db),

  scans: {
    /** By the id of each domain. A million links take some 50 ms. */
    countUses: scan((db) => {
      const reads = new DomainReads(db)
      return (_: object): Record<number, DomainUses> =>
        Object.fromEntries(reads.list().map(({ id }) => [id, reads.usesOf(id)]))
    }),
  },

  // Links of others may have the domain of the account: it goes back to the owners of the service.
  forget: ["UPDATE domains SET access = 'owners', account_id = NULL WHERE account_id = ?1"],

  writes: {
    add: rulesWrite('owner', (db) => {
      const count = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM domains')
      const insert = db.prepare<null, (string | number | null)[]>(
        `INSERT INTO domains
           (host, account_id, access, codes, root_url, not_found_url, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host) DO NOTHING`,
      )
      return (domain: Authored & DomainFields): 'added' | 'exists' | 'too_many' => {
        const { author, host, accountId, access, codes, rootUrl, notFoundUrl } = domain
        if ((count.get()?.n ?? 0) >= DOMAINS_MAX) return 'too_many'
        const done = insert.run(host, accountId, access, codes, rootUrl, notFoundUrl, author.now)
        return done.changes > 0 ? 'added' : 'exists'
      }
    }),

    /** False if there is no such domain. */
    set: rulesWrite('owner', (db) => {
      const update = db.prepare<null, (string | number | null)[]>(
        `UPDATE domains SET account_id = ?, access = ?, codes = ?, root_url = ?, not_found_url = ?
         WHERE id = ?`,
      )
      return (domain: Authored & Omit<Domain, 'host' | 'createdAt'>): boolean => {
        const { id, accountId, access, codes, rootUrl, notFoundUrl } = domain
        return update.run(accountId, access, codes, rootUrl, notFoundUrl, id).changes > 0
      }
    }),

    /** What uses the domain, if something does: then it stays. */
    remove: rulesWrite('owner', (db) => {
      const reads = new DomainReads(db)
      const clear = db.prepare<null, [number]>(
        'UPDATE accounts SET domain_id = NULL WHERE domain_id = ?',
      )
      const removals = [
        'DELETE FROM app_files WHERE domain_id = ?',
        'DELETE FROM domains WHERE id = ?',
      ].map((sql) => db.prepare<null, [number]>(sql))
      return ({ id }: Authored & Pick<Domain, 'id'>): DomainUses | 'removed' | undefined => {
        const uses = reads.usesOf(id)
        if (uses.links + uses.aliases > 0) return uses
        clear.run(id)
        const changes = removals.map((removal) => removal.run(id).changes)
        return changes.at(-1) ? 'removed' : undefined
      }
    }),

    /** False if the account may not use the domain. */
    setDefault: authoredWrite('admin', (db) => {
      const { mayUse } = domainUses(db)
      const set = db.prepare<null, [AccountId, number | null]>(
        'UPDATE accounts SET domain_id = ?2 WHERE id = ?1',
      )
      return ({ author, domainId }: Authored & { domainId: number }): boolean => {
        const { accountId } = author
        if (!mayUse(accountId, domainId)) return false
        set.run(accountId, domainCell(domainId))
        return true
      }
    }),
  },
})
