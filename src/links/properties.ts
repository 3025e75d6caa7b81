import type { Account } from '../accounts/store.ts'
import type { StoredAlias } from '../addresses/names.ts'
import { aliasLists } from '../addresses/schema.ts'
import { authorOf } from '../db/author.ts'
import { AppError } from '../errors.ts'
import { isoTime } from '../lib/clock.ts'
import { toCode } from '../lib/code.ts'
import { check, type LinkInput } from './check.ts'
import type { Kit } from './kit.ts'
import type { CountedLink, Link, ParsedUrl } from './link.ts'
import type { LinkChange } from './link-change.ts'
import {
  type LinkProperties,
  NO_PROPERTIES,
  type PropertiesChange,
  propertiesView,
} from './property-table.ts'
import type { LookupView, PropertiesView } from './schema.ts'
import { requireOwnedIds, requireOwnedLink } from './update.ts'
import { urlKey } from './url.ts'

export type DetailedLink = CountedLink & { properties: Readonly<LinkProperties> }

/** The link of a code in any letter case. Throws `code_not_found`, also for a malformed code. */
export function getLink({ data }: Kit, text: string): Link {
  const code = toCode(text)
  const link = code && data.links.findByCode(code)
  if (!link) throw new AppError('code_not_found', text.toUpperCase())
  return link
}

/** A code's destination and hits, for anybody. Not counted as a hit. */
export function lookup(deps: Kit, code: string): LookupView {
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

/** Adds the hits and the properties of each link. */
export function withDetails({ hits, data }: Kit, links: readonly Link[]): DetailedLink[] {
  const ids = links.map(({ id }) => id)
  const counts = hits.of(ids)
  const found = data.properties.readProperties(ids)
  return links.map((link) => ({
    ...link,
    hitCount: counts.get(link.id) ?? 0,
    properties: found.get(link.id) ?? NO_PROPERTIES,
  }))
}

/** The account's own link with its properties. Throws `code_not_found`. */
export function getProperties(deps: Kit, account: Account, code: string): PropertiesView {
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
  { addresses }: Pick<Kit, 'addresses'>,
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
  deps: Kit,
  account: Account,
  codes: readonly string[],
  change: PropertiesChange,
): Promise<void> {
  const ids = await deps.writer.decide(() => requireOwnedIds(deps, account, codes))
  await patchLinks(deps, account, ids, change)
}

/**
 * Changes the URL, properties and aliases, which are well-formed, of one link: all or nothing.
 * Throws as `changeProperties`, and `alias_not_allowed`, `path_taken`.
 */
export async function changeLink(
  deps: Kit,
  account: Account,
  code: string,
  change: LinkChange & { url?: ParsedUrl | undefined },
): Promise<void> {
  const link = await deps.writer.decide(() => requireOwnedLink(deps, account, code))
  const changed = await patchLinks(deps, account, [link.id], change, link)
  if (changed === 0) throw new AppError('code_not_found', code.toUpperCase())
}

/** `change.url` and `change.aliases`: only of a single link, which is `link`. */
async function patchLinks(
  deps: Kit,
  account: Account,
  ids: readonly number[],
  change: LinkInput,
  link?: Link,
): Promise<number> {
  const [first = 0] = ids
  const { url, patch, aliases } = await check(deps, account, change, {
    url: link?.url ?? null,
    properties: [...deps.data.properties.readProperties(ids).values()],
    aliases: change.aliases ? deps.data.aliases.ofLink(first) : [],
  })
  const quota = deps.plans[account.plan]
  return deps.links.patchLinks({
    ids,
    ...(url && { url: { text: url.text, key: urlKey(url) } }),
    patch,
    aliases,
    quota,
    author: authorOf(account, deps.clock()),
  })
}
