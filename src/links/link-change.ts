import { canonicalHost } from '../addresses/address.ts'
import { type AliasName, type AliasPatch, nameOf } from '../addresses/names.ts'
import type { PublicUrls } from './link.ts'
import type { PropertiesChange } from './property-table.ts'
import type { LinkFields } from './schema.ts'

/** What a request changes of a link beside its URL. */
export interface LinkChange extends PropertiesChange {
  aliases?: AliasPatch | undefined
}

/** A request names all aliases that the link has afterwards, those of each domain apart. */
export function changeOf({
  aliases,
  domain_aliases,
  display_alias,
  ...change
}: LinkFields): LinkChange {
  const setOnDomains = domain_aliases && namesOf(domain_aliases)
  const patch = { set: aliases, setOnDomains, display: display_alias }
  const hasAliases = Object.values(patch).some((value) => value !== undefined)
  return { ...change, aliases: hasAliases ? patch : undefined }
}

export const namesOf = (lists: Readonly<Record<string, readonly string[]>>): AliasName[] =>
  Object.entries(lists).flatMap(([host, paths]) =>
    paths.map((path) => nameOf({ domain: canonicalHost(host) ?? host, path })),
  )

/** The change with the primary domain as it is stored: without its host. */
export function withoutPrimaryHost<Change extends LinkChange>(
  addresses: PublicUrls,
  { domain, aliases, ...change }: Change,
) {
  const stored = (names: readonly AliasName[] | undefined) =>
    names?.map((name) => addresses.nameOf(name))
  return {
    ...change,
    domain: addresses.domainOf(domain),
    aliases: aliases && {
      set: stored(aliases.set),
      setOnDomains: stored(aliases.setOnDomains),
      add: stored(aliases.add),
      remove: stored(aliases.remove),
      display: aliases.display && addresses.nameOf(aliases.display),
    },
  }
}
