import type { Database } from 'bun:sqlite'
import { prepareAddressed } from '../addresses/names.ts'
import { AppError } from '../errors.ts'
import type { HitCounts } from '../hits/hits.ts'
import { isoTime } from '../lib/clock.ts'
import { type Code, toCode } from '../lib/code.ts'
import { LINK_COLUMNS, type Link, type SecretLink } from './link.ts'
import type { LookupView } from './schema.ts'

export interface ReadDeps {
  data: { links: LinkReads }
  hits: HitCounts
}

/** The link of a code in any letter case. Throws `code_not_found`, also for a malformed code. */
export function getLink({ data }: Pick<ReadDeps, 'data'>, text: string): Link {
  const code = toCode(text)
  const link = code && data.links.findByCode(code)
  if (!link) throw new AppError('code_not_found', text.toUpperCase())
  return link
}

/** A code's destination and hits, for anybody. Not counted as a hit. */
export function lookup(deps: ReadDeps, code: string): LookupView {
  const link = getLink(deps, code)
  return lookupView(link, deps.hits.ofLink(link.id), deps.data.links.publicUrlOf(link))
}

export function lookupView(link: Link, hitCount: number, url = link.url): LookupView {
  return {
    code: link.code,
    url,
    created_at: isoTime(link.createdAt),
    hit_count: hitCount,
  }
}

/** Reads of one row, on the control thread's own connection. */
export class LinkReads {
  readonly #byCode
  readonly #secretByCode
  readonly #isProtected
  readonly #lastId

  constructor(db: Database) {
    this.#byCode = prepareAddressed<Link, [Code]>(
      db,
      `SELECT ${LINK_COLUMNS} FROM links WHERE code = ?`,
    )
    this.#secretByCode = prepareAddressed<SecretLink, [Code]>(
      db,
      `SELECT ${LINK_COLUMNS}, passcode_hash AS passcodeHash FROM links WHERE code = ?`,
    )
    this.#isProtected = db.prepare<object, [number]>(
      'SELECT 1 FROM links WHERE id = ? AND password IS NOT NULL',
    )
    this.#lastId = db.prepare<{ id: number | null }, []>('SELECT max(id) AS id FROM links')
  }

  /** The highest id of a link; 0 without links. */
  lastId(): number {
    return this.#lastId.get()?.id ?? 0
  }

  findByCode(code: Code): Link | undefined {
    return this.#byCode.get(code)
  }

  /** The URL that anybody may see: null for a link with a password. */
  publicUrlOf({ id, url }: Link): string | null {
    return this.#isProtected.get(id) ? null : url
  }

  /** The link with the hash of its passcode. */
  findSecretByCode(code: Code): SecretLink | undefined {
    return this.#secretByCode.get(code)
  }
}
