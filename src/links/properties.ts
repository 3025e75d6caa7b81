import type { Database } from 'bun:sqlite'
import type { Account } from '../accounts/store.ts'
import type { StoredAlias } from '../addresses/names.ts'
import { aliasLists } from '../addresses/schema.ts'
import { authorOf } from '../db/author.ts'
import { subject } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import type { HitCounts } from '../hits/hits.ts'
import { isoTime } from '../lib/clock.ts'
import { check } from './check.ts'
import type { CountedLink, Link } from './link.ts'
import type { LinkChange } from './link-change.ts'
import {
  type LinkProperties,
  NO_PROPERTIES,
  PROPERTY_COLUMNS,
  type PropertiesChange,
  type PropertiesRow,
  propertiesView,
  readProperties,
} from './property-table.ts'
import type { PropertiesView } from './schema.ts'
import { requireOwnedIds, requireOwnedLink, type UpdateDeps } from './update.ts'

/** Reads on the control thread's own connection. */
class PropertyReads {
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

export type DetailedLink = CountedLink & { properties: Readonly<LinkProperties> }

export interface DetailDeps {
  hits: Pick<HitCounts, 'of'>
  data: { properties: Pick<PropertyReads, 'readProperties'> }
}

/** Adds the hits and the properties of each link. */
export function withDetails({ hits, data }: DetailDeps, links: readonly Link[]): DetailedLink[] {
  const ids = links.map(({ id }) => id)
  const counts = hits.of(ids)
  const found = data.properties.readProperties(ids)
  return links.map((link) => ({
    ...link,
    hitCount: counts.get(link.id) ?? 0,
    properties: found.get(link.id) ?? NO_PROPERTIES,
  }))
}

export interface ChangeDeps extends UpdateDeps {
  data: UpdateDeps['data'] & { properties: PropertyReads }
}

export interface PropertiesDeps extends ChangeDeps {
  hits: HitCounts
}

/** The account's own link with its properties. Throws `code_not_found`. */
export function getProperties(
  deps: PropertiesDeps,
  account: Account,
  code: string,
): PropertiesView {
  const link = requireOwnedLink(deps, account, code)
  const detailed = {
    ...link,
    hitCount: deps.hits.ofLink(link.id),
    properties: deps.data.properties.propertiesOf(link.id),
  }
  return ownView(deps, detailed, deps.data.aliases.ofLink(link.id))
}

/** A link of the account as the API shows it to the account. */
export function ownView(
  { addresses }: Pick<PropertiesDeps, 'addresses'>,
  link: DetailedLink,
  aliases: readonly StoredAlias[],
): PropertiesView {
  const chosen = aliases.find(({ displayed }) => displayed === 1)
  return {
    code: link.code,
    url: link.url,
    short_url: addresses.short(link),
    qr_url: addresses.qr(link),
    display_url: addresses.display(link),
    created_at: isoTime(link.createdAt),
    hit_count: link.hitCount,
    ...propertiesView(addresses, link.properties),
    ...aliasLists(addresses, aliases),
    display_alias: chosen === undefined ? null : addresses.textOf(chosen),
  }
}

/**
 * Changes properties of at most `CHANGED_MAX` links of one account: all of them or none. Throws
 * `code_not_found`, then `destinations_not_allowed`, `url_blocked`, `invalid_value`,
 * `quota_exceeded`.
 */
export async function changeProperties(
  deps: ChangeDeps,
  account: Account,
  codes: readonly string[],
  change: PropertiesChange,
): Promise<void> {
  const ids = await deps.writer.decide(() => requireOwnedIds(deps, account, codes))
  await patchLinks(deps, account, ids, change)
}

/**
 * Changes properties and aliases, which are well-formed, of one link: all or nothing. Throws as
 * `changeProperties`, and `alias_not_allowed`, `path_taken`.
 */
export async function changeLink(
  deps: PropertiesDeps,
  account: Account,
  code: string,
  change: LinkChange,
): Promise<void> {
  const { id } = await deps.writer.decide(() => requireOwnedLink(deps, account, code))
  const changed = await patchLinks(deps, account, [id], change)
  if (changed === 0) throw new AppError('code_not_found', code.toUpperCase())
}

/** `change.aliases`: only of a single link. */
async function patchLinks(
  deps: ChangeDeps,
  account: Account,
  ids: readonly number[],
  change: LinkChange,
): Promise<number> {
  const [first = 0] = ids
  const { patch, aliases } = await check(deps, account, change, {
    properties: [...deps.data.properties.readProperties(ids).values()],
    aliases: change.aliases ? deps.data.aliases.ofLink(first) : [],
  })
  const quota = deps.plans[account.plan]
  return deps.links.patchLinks({
    ids,
    patch,
    aliases,
    quota,
    author: authorOf(account, deps.clock()),
  })
}
