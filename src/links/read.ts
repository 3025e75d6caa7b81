import type { Database } from 'bun:sqlite'
import { prepareAddressed } from '../addresses/names.ts'
import { subject } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { LINK_COLUMNS, type Link, type SecretLink } from './link.ts'
import {
  type LinkProperties,
  NO_PROPERTIES,
  PROPERTY_COLUMNS,
  type PropertiesRow,
  readProperties,
} from './property-table.ts'

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

/** Reads on the control thread's own connection. */
export class PropertyReads {
  readonly #byIds

  constructor(db: Database) {
    this.#byIds = db.prepare<PropertiesRow & { id: number }, [string]>(
      `SELECT id, ${PROPERTY_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))`,
    )
  }

  readProperties(ids: readonly number[]): Map<number, LinkProperties> {
    const rows = this.#byIds.all(JSON.stringify(ids))
    return new Map(rows.map((row) => [row.id, readProperties(row)]))
  }

  /** Properties of a link. A deleted link has none. */
  propertiesOf(id: number): LinkProperties {
    return this.readProperties([id]).get(id) ?? NO_PROPERTIES
  }
}

export const properties = subject({ reads: (db): PropertyReads => new PropertyReads(db) })
