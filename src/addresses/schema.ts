import { z } from 'zod'
import {
  BAD_DOMAIN,
  canonicalHost,
  canonicalPath,
  findPathProblem,
  type NamedAddress,
  parseAddress,
} from './address.ts'
import { ALIASES_MAX, type StoredAlias } from './names.ts'
import type { PublicUrls } from './urls.ts'

/** Addresses in requests and responses. */

/** The host of a domain; its output is canonical. */
export const DomainHost = z
  .string(BAD_DOMAIN)
  .overwrite((text) => canonicalHost(text) ?? '')
  .min(1, BAD_DOMAIN)

export const BAD_ALIASES = `Invalid aliases: must be a list of at most ${ALIASES_MAX} paths`

/** A path, decoded and without its first slash; its output is canonical. */
export const AliasPath = z
  .string(BAD_ALIASES)
  .overwrite(canonicalPath)
  .superRefine((path, context) => {
    const problem = findPathProblem(path)
    if (problem) context.addIssue({ code: 'custom', message: `Invalid aliases: a path ${problem}` })
  })

const BAD_DOMAIN_ALIASES = 'Invalid domain_aliases: must be an object of lists of paths'

export const DomainAliases = z
  .record(z.string(), z.array(AliasPath, BAD_DOMAIN_ALIASES), BAD_DOMAIN_ALIASES)
  .superRefine((lists, context) => {
    const isBad = Object.keys(lists).some((host) => canonicalHost(host) === undefined)
    if (isBad) context.addIssue({ code: 'custom', message: BAD_DOMAIN })
  })
  .meta({ example: { 'go.example': ['menu'] } })

/** The addresses in lists of paths by their hosts. */
export const namedAddresses = (
  lists: Readonly<Record<string, readonly string[]>>,
): NamedAddress[] =>
  Object.entries(lists).flatMap(([host, paths]) =>
    paths.map((path) => ({ host: canonicalHost(host) ?? host, path })),
  )

/** Reads an address as people may write it. */
export function canonicalAddress(text: string): NamedAddress {
  const { host, path } = parseAddress(text)
  return { host: host && (canonicalHost(host) ?? host), path: canonicalPath(path) }
}

export const BAD_DISPLAY_ALIAS = 'Invalid display_alias: must be one of the aliases of the link'

/** What requests set of the aliases of a link. */
export const aliasFields = {
  aliases: z
    .array(AliasPath, BAD_ALIASES)
    .meta({
      // The writer refuses more, unless none is added.
      maxItems: ALIASES_MAX,
      description:
        'All further paths of the link, without the first slash and in the letters that people ' +
        'see. They answer in any letter case, imported ones in exact case. With ALIASES=owners, ' +
        'only owners of the service can add some.',
      example: ['spring-sale'],
    })
    .nullish()
    .transform((paths) => (paths === null ? [] : paths)),
  domain_aliases: DomainAliases.nullish()
    .transform((lists) => (lists === undefined ? undefined : namedAddresses(lists ?? {})))
    .meta({ description: 'The same on the other domains: a list for each host.' }),
  display_alias: z
    .string(BAD_DISPLAY_ALIAS)
    .meta({
      description:
        'The alias that people see; on another domain as `//go.example/menu`. Null: the newest ' +
        'on the domain of the link.',
    })
    .nullish()
    .transform((text) => (typeof text === 'string' ? canonicalAddress(text) : text)),
}

/** Paths on the primary domain, and those on each other one by its host. */
export function aliasLists(
  { namedHost }: Pick<PublicUrls, 'namedHost'>,
  aliases: readonly StoredAlias[],
) {
  const lists: { aliases: string[]; domain_aliases: Record<string, string[]> } = {
    aliases: [],
    domain_aliases: {},
  }
  for (const { domainId, path } of aliases) {
    const host = namedHost(domainId)
    if (host === null) lists.aliases.push(path)
    else lists.domain_aliases[host] = [...(lists.domain_aliases[host] ?? []), path]
  }
  return lists
}
