import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { ADDRESS_COLUMNS, type DisplayedLink, prepareAddressed } from '../addresses/names.ts'
import { type Authored, authoredWrite, subject } from '../db/subject.ts'

interface PublicPage extends DisplayedLink {
  linkId: number
  url: string | null
  /** 1: with a password, so that the page never shows the destination. */
  isProtected: number
  /** 1: the page shows the destination. */
  showsUrl: number
}

interface ShareCommand extends Authored {
  linkId: number
  /** Keyed hash of the token in the address. */
  hash: Uint8Array
  showsUrl: boolean
}

const SELECT = `SELECT link_id AS linkId, code, url, ${ADDRESS_COLUMNS},
  password IS NOT NULL AS isProtected, shows_url AS showsUrl
  FROM shared_pages JOIN links ON links.id = link_id`

/** Public pages with the numbers of one link, for everybody who has their secret address. */
export const publicPages = subject({
  reads(db) {
    // None of an account whose links the owner of the service has disabled.
    const byHash = prepareAddressed<PublicPage, [Uint8Array]>(
      db,
      `${SELECT} JOIN accounts ON accounts.id = account_id
       WHERE hash = ? AND links_disabled_at IS NULL`,
    )
    const byLink = prepareAddressed<PublicPage, [number]>(db, `${SELECT} WHERE link_id = ?`)
    return {
      findByHash: (hash: Uint8Array): PublicPage | undefined => byHash.get(hash),
      findByLink: (linkId: number): PublicPage | undefined => byLink.get(linkId),
    }
  },

  writes: {
    /** Creates the page of a link, or gives it another address. False: nothing is changed. */
    share: authoredWrite('editor', {
      prepare(db) {
        const set = db.prepare<null, [Uint8Array, number, number, number]>(
          `INSERT INTO shared_pages (link_id, hash, shows_url)
           SELECT id, ?1, ?2 FROM links WHERE id = ?3 AND account_id = ?4
           ON CONFLICT (link_id) DO UPDATE SET hash = ?1, shows_url = ?2`,
        )
        return ({ author, linkId, hash, showsUrl }: ShareCommand): boolean =>
          set.run(hash, showsUrl ? 1 : 0, linkId, author.accountId).changes > 0
      },
    }),

    unshare: authoredWrite('editor', {
      prepare(db) {
        const remove = db.prepare<null, [number, AccountId]>(
          `DELETE FROM shared_pages
           WHERE link_id = (SELECT id FROM links WHERE id = ? AND account_id = ?)`,
        )
        return ({ author, linkId }: Pick<ShareCommand, 'author' | 'linkId'>): void =>
          void remove.run(linkId, author.accountId)
      },
    }),
  },
})

/** Removes the page of a deleted link. */
export function publicPageRemover(db: Database): (linkId: number) => void {
  const remove = db.prepare<null, [number]>('DELETE FROM shared_pages WHERE link_id = ?')
  return (linkId) => void remove.run(linkId)
}
