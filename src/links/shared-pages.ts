import type { Database } from 'bun:sqlite'
import type { Code } from '../lib/code.ts'
import type { Author } from './link.ts'
import { accountCounts } from './quota.ts'

/** Public pages with the numbers of one link, for everybody who has their secret address. */

interface SharedPage {
  linkId: number
  code: Code
  url: string | null
  /** 1: the page shows the destination. */
  showsUrl: number
}

interface ShareCommand {
  author: Author
  linkId: number
  /** Keyed hash of the token in the address. */
  hash: Uint8Array
  showsUrl: boolean
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function sharedPageWrites(db: Database) {
  const accounts = accountCounts(db)
  const set = db.prepare<null, [Uint8Array, number, number, number]>(
    `INSERT INTO shared_pages (link_id, hash, shows_url)
     SELECT id, ?1, ?2 FROM links WHERE id = ?3 AND account_id = ?4
     ON CONFLICT (link_id) DO UPDATE SET hash = ?1, shows_url = ?2`,
  )
  const remove = sharedPageRemover(db)
  return {
    /** Creates the page of a link, or gives it another address. False: nothing is changed. */
    sharePage({ author, linkId, hash, showsUrl }: ShareCommand): boolean {
      if (!accounts.isActive(author)) return false
      return set.run(hash, showsUrl ? 1 : 0, linkId, author.accountId).changes > 0
    },

    unsharePage({ linkId }: { linkId: number }): void {
      remove(linkId)
    },
  }
}

export type SharedPageWrites = ReturnType<typeof sharedPageWrites>

/** Removes the page of a deleted link. */
export function sharedPageRemover(db: Database): (linkId: number) => void {
  const remove = db.prepare<null, [number]>('DELETE FROM shared_pages WHERE link_id = ?')
  return (linkId) => void remove.run(linkId)
}

/** Reads, on the control thread's own connection. */
export class SharedPageReads {
  readonly #byHash
  readonly #byLink

  constructor(db: Database) {
    const select = `SELECT link_id AS linkId, code, url, shows_url AS showsUrl
      FROM shared_pages JOIN links ON links.id = link_id`
    this.#byHash = db.prepare<SharedPage, [Uint8Array]>(`${select} WHERE hash = ?`)
    this.#byLink = db.prepare<SharedPage, [number]>(`${select} WHERE link_id = ?`)
  }

  find(hash: Uint8Array): SharedPage | undefined {
    return this.#byHash.get(hash) ?? undefined
  }

  ofLink(linkId: number): SharedPage | undefined {
    return this.#byLink.get(linkId) ?? undefined
  }
}
