import type { Database } from 'bun:sqlite'
import type { z } from 'zod'
import type { Account } from '../accounts/store.ts'
import type { StoredAlias } from '../addresses/names.ts'
import { pastedSearch } from '../addresses/resolve.ts'
import { aliasLists } from '../addresses/schema.ts'
import { type Operations, subject } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import type { HitCounts } from '../hits/hits.ts'
import { isoTime, MINUTE } from '../lib/clock.ts'
import { check } from './check.ts'
import { authorOf, type CountedLink, type Link } from './link.ts'
import type { LinkChange } from './link-change.ts'
import type { LinkPages } from './lists.ts'
import type { OwnListQuery, OwnListView } from './own-list-schema.ts'
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
  properties: Pick<Operations<typeof properties>, 'readProperties'>
}

/** Adds the hits and the properties of each link. */
export function withDetails(
  { hits, properties }: DetailDeps,
  links: readonly Link[],
): DetailedLink[] {
  const ids = links.map(({ id }) => id)
  const counts = hits.of(ids)
  const found = properties.readProperties(ids)
  return links.map((link) => ({
    ...link,
    hitCount: counts.get(link.id) ?? 0,
    properties: found.get(link.id) ?? NO_PROPERTIES,
  }))
}

export interface ChangeDeps extends UpdateDeps {
  properties: PropertyReads
}

export interface PropertiesDeps extends ChangeDeps {
  hits: HitCounts
}

/** The account's own link with its properties. Throws `code_not_found`. */
export function getProperties(deps: PropertiesDeps, owner: Account, code: string): PropertiesView {
  const link = requireOwnedLink(deps, owner, code)
  const detailed = {
    ...link,
    hitCount: deps.hits.ofLink(link.id),
    properties: deps.properties.propertiesOf(link.id),
  }
  return viewOf(deps, detailed, deps.aliases.ofLink(link.id))
}

/**
 * A page of the account's links with their properties, newest first. The search finds what the
 * search of the dashboard finds. Throws `search_timeout`.
 */
export async function listWithProperties(
  deps: PropertiesDeps & { pages: Pick<LinkPages, 'findPage'> },
  { id: accountId }: Account,
  { limit, offset, search, tag, state }: z.output<typeof OwnListQuery>,
  signal?: AbortSignal,
): Promise<OwnListView> {
  const now = deps.clock()
  const { total, links } = await deps.pages.findPage(
    {
      accountId,
      limit,
      offset,
      ...pastedSearch(deps, accountId, search),
      inProperties: true,
      tag,
      // Matches are counted once a minute.
      state: state && { is: state, at: now - (now % MINUTE) },
    },
    signal,
  )
  const aliases = deps.aliases.ofLinks(links.map(({ id }) => id))
  const items = withDetails(deps, links).map((link) =>
    viewOf(deps, link, aliases.get(link.id) ?? []),
  )
  return { total, limit, offset, count: items.length, items }
}

function viewOf(
  { addresses }: PropertiesDeps,
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
  owner: Account,
  codes: readonly string[],
  change: PropertiesChange,
): Promise<void> {
  const ids = await deps.writer.decide(() => requireOwnedIds(deps, owner, codes))
  await patchLinks(deps, owner, ids, change)
}

/**
 * Changes properties and aliases, which are well-formed, of one link: all or nothing. Throws as
 * `changeProperties`, and `alias_not_allowed`, `path_taken`.
 */
export async function changeLink(
  deps: PropertiesDeps,
  owner: Account,
  code: string,
  change: LinkChange,
): Promise<void> {
  const { id } = await deps.writer.decide(() => requireOwnedLink(deps, owner, code))
  const changed = await patchLinks(deps, owner, [id], change)
  if (changed === 0) throw new AppError('code_not_found', code.toUpperCase())
}

/** `change.aliases`: only of a single link. */
async function patchLinks(
  deps: ChangeDeps,
  owner: Account,
  ids: readonly number[],
  change: LinkChange,
): Promise<number> {
  const [first = 0] = ids
  const { patch, aliases } = await check(deps, owner, change, {
    properties: [...deps.properties.readProperties(ids).values()],
    aliases: change.aliases ? deps.aliases.ofLink(first) : [],
  })
  const quota = deps.plans[owner.plan]
  return deps.links.patchLinks({
    ids,
    patch,
    aliases,
    quota,
    author: authorOf(owner, deps.clock()),
  })
}
