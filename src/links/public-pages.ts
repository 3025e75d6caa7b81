import type { Database } from 'bun:sqlite'
import { hashesEqual, type SecretHasher } from '../accounts/secrets.ts'
import type { AccountId } from '../accounts/store.ts'
import { ADDRESS_COLUMNS, type DisplayedLink, prepareAddressed } from '../addresses/names.ts'
import { type Authored, authoredWrite, type Operations, subject } from '../db/subject.ts'

interface PublicPage extends DisplayedLink {
  linkId: number
  /** 32 bytes. Decision 085. */
  seed: Uint8Array
  url: string | null
  /** 1: with a password, so that the page never shows the destination. */
  isProtected: number
  /** 1: the page shows the destination. */
  showsUrl: number
}

interface ShareCommand extends Authored {
  linkId: number
  /** Random bytes, for a page that is new or gets another address. */
  seed: Uint8Array
  /** A page that exists gets another address. */
  isNew: boolean
  showsUrl: boolean
}

const MAC_BYTES = 16
const TOKEN = /^([A-Z\d]{6,20})-[\w-]{22}$/
/** A page that was created before addresses had a code: its seed is the hash of this. */
const FORMER_TOKEN = /^[\w-]{22}$/

/**
 * The end of the address of a page: the code, and what only this service can derive from the seed.
 * So the account can read it again, and the database alone has no address.
 */
export function publicToken(
  hasher: SecretHasher,
  { code, seed }: Pick<PublicPage, 'code' | 'seed'>,
): string {
  const text = `${code} ${Buffer.from(seed).toString('hex')}`
  const mac = hasher.hash('shared-page-address', text).subarray(0, MAC_BYTES)
  return `${code}-${mac.toString('base64url')}`
}

/** The page with an address. */
export function findPublicPage(
  { data, hasher }: { data: { publicPages: Operations<typeof publicPages> }; hasher: SecretHasher },
  token: string,
): PublicPage | undefined {
  const pages = data.publicPages
  if (FORMER_TOKEN.test(token)) return pages.findByHash(hasher.hash('shared-page', token))
  const [, code] = TOKEN.exec(token) ?? []
  const page = code === undefined ? undefined : pages.findByCode(code)
  const isRight = page && hashesEqual(Buffer.from(publicToken(hasher, page)), Buffer.from(token))
  return isRight ? page : undefined
}

const SELECT = `SELECT link_id AS linkId, hash AS seed, code, url, ${ADDRESS_COLUMNS},
  password IS NOT NULL AS isProtected, shows_url AS showsUrl
  FROM shared_pages JOIN links ON links.id = link_id`

/** Public pages with the numbers of one link, for everybody who has their secret address. */
export const publicPages = subject({
  reads(db) {
    // None of an account whose links the owner of the service has disabled.
    const enabled = `${SELECT} JOIN accounts ON accounts.id = account_id
      WHERE links_disabled_at IS NULL AND`
    const byHash = prepareAddressed<PublicPage, [Uint8Array]>(db, `${enabled} hash = ?`)
    const byCode = prepareAddressed<PublicPage, [string]>(db, `${enabled} code = ?`)
    const byLink = prepareAddressed<PublicPage, [number]>(db, `${SELECT} WHERE link_id = ?`)
    return {
      findByHash: (hash: Uint8Array): PublicPage | undefined => byHash.get(hash),
      findByCode: (code: string): PublicPage | undefined => byCode.get(code),
      findByLink: (linkId: number): PublicPage | undefined => byLink.get(linkId),
    }
  },

  writes: {
    /** Creates or changes the page of a link. False: there is no such link. */
    share: authoredWrite('editor', (db) => {
      const set = db.prepare<null, [Uint8Array, number, number, number, number]>(
        `INSERT INTO shared_pages (link_id, hash, shows_url)
         SELECT id, ?1, ?2 FROM links WHERE id = ?3 AND account_id = ?4
         ON CONFLICT (link_id) DO UPDATE SET hash = iif(?5, ?1, hash), shows_url = ?2`,
      )
      return ({ author, linkId, seed, isNew, showsUrl }: ShareCommand): boolean =>
        set.run(seed, showsUrl ? 1 : 0, linkId, author.accountId, isNew ? 1 : 0).changes > 0
    }),

    unshare: authoredWrite('editor', (db) => {
      const remove = db.prepare<null, [number, AccountId]>(
        `DELETE FROM shared_pages
         WHERE link_id = (SELECT id FROM links WHERE id = ? AND account_id = ?)`,
      )
      return ({ author, linkId }: Pick<ShareCommand, 'author' | 'linkId'>): void =>
        void remove.run(linkId, author.accountId)
    }),
  },
})

/** Removes the page of a deleted link. */
export function publicPageRemover(db: Database): (linkId: number) => void {
  const remove = db.prepare<null, [number]>('DELETE FROM shared_pages WHERE link_id = ?')
  return (linkId) => void remove.run(linkId)
}
