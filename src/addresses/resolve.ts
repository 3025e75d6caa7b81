import type { AccountId } from '../accounts/store.ts'
import { type Code, toCode } from '../lib/code.ts'
import { decodePercent } from '../lib/percent.ts'
import { lookedUp, withoutLastSlash } from './address.ts'
import type { RequestDomain } from './map.ts'
import type { Addressed, AliasReads } from './names.ts'
import { findUrl, peelings, withoutInvisible } from './pasted.ts'
import type { PublicUrls } from './urls.ts'

/**
 * Finds the link that a person means: by its code, an alias or a short URL, with or without scheme,
 * percent-encoded, or with punctuation around it. Every place that asks for a link uses this,
 * except the endpoints whose contract names a code.
 */

/** What this needs of a link. */
interface NamedLink extends Addressed {
  accountId: AccountId
}

export interface ResolveDeps<Found extends NamedLink = NamedLink> {
  data: {
    links: { findByCode(code: Code): Found | undefined }
    aliases: Pick<AliasReads, 'findByPath'>
  }
  addresses: Pick<PublicUrls, 'addressIn'>
}

/** Characters. The longest alias takes 765 encoded, and 1,275 encoded twice. */
const TEXT_MAX = 2048

/** A path of short URLs. */
interface NamedPath {
  /** Decoded, without its first slash. */
  path: string
  /** Undefined: the text named no host. */
  domain?: RequestDomain
}

/** The link that the text redirects to; undefined if it names none. */
export function resolveLink<Found extends NamedLink>(
  deps: ResolveDeps<Found>,
  text: string,
): Found | undefined {
  return firstOf(namedPaths(deps, text), (named) => findByPath(deps, named))
}

/**
 * What to search for: a short URL finds the link by its code, and a path, which URLs may contain,
 * its link too.
 */
export function pastedSearch(
  deps: ResolveDeps,
  accountId: AccountId,
  text = '',
): { search: string; orCode?: Code } {
  const isPath = /^\s*\/(?!\/)/.test(text)
  const named = namedPaths(deps, text).filter(({ domain }) => isPath || domain !== undefined)
  const found = firstOf(named, (each) => findByPath(deps, each))
  if (found?.accountId !== accountId) return { search: text }
  return isPath ? { search: text, orCode: found.code } : { search: found.code }
}

/** The code of that link, or else one that the text contains: it may be disabled without a link. */
export function resolveCode(deps: ResolveDeps, text: string): Code | undefined {
  const found = resolveLink(deps, text)
  return found?.code ?? firstOf(namedPaths(deps, text), ({ path }) => toCode(path))
}

/**
 * The address that a person types: a path, which has no domain then, or a whole short URL that is
 * printed somewhere.
 */
export function typedAddress(
  { addresses }: Pick<ResolveDeps, 'addresses'>,
  text: string,
): { domainId?: number; path: string } {
  const [{ path, domain }] = pathsOf(addresses, text)
  return domain ? { domainId: domain.id, path } : { path }
}

/** The link that a redirect would follow: a code is found before an alias. */
function findByPath<Found extends NamedLink>(
  { data: { links, aliases } }: Pick<ResolveDeps<Found>, 'data'>,
  { path, domain }: NamedPath,
): Found | undefined {
  const code = toCode(path)
  const direct = code && links.findByCode(code)
  const isThere = domain?.codes !== 'own' || direct?.domainId === domain.id
  if (direct && isThere) return direct
  const alias = aliases.findByPath(path, domain)
  return alias && links.findByCode(alias.code)
}

function firstOf<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
): Found | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** The paths that the text may mean. The most literal reading comes first. */
function namedPaths({ addresses }: Pick<ResolveDeps, 'addresses'>, text: string): NamedPath[] {
  const shown = withoutInvisible(text)
  if (shown.length > TEXT_MAX) return []
  const within = findUrl(shown)
  const texts = new Set([...peelings(shown), ...(within ? peelings(within) : [])])
  return [...texts].flatMap((peeled) => {
    const decoded = decodePercent(peeled) ?? peeled
    const readings = decoded === peeled ? [peeled] : [peeled, decoded]
    return readings.flatMap((reading) => pathsOf(addresses, reading))
  })
}

function pathsOf(addresses: ResolveDeps['addresses'], text: string): [NamedPath, ...NamedPath[]] {
  const address = addresses.addressIn(text)
  if (address) {
    const { domain, path } = address
    return [{ path: lookedUp(path), domain }]
  }
  const bare = text.replace(/^\//, '')
  const withoutQuery = bare.replace(/[?#].*$/s, '')
  return [{ path: withoutLastSlash(bare) }, { path: withoutLastSlash(withoutQuery) }]
}
