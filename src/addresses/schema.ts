import { z } from 'zod'
import { BAD_DOMAIN, canonicalHost } from './address.ts'
import { ALIASES_MAX, canonicalPath, findPathProblem, nameOf, parseName } from './names.ts'

/** Aliases in requests. */

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
    const message = Object.keys(lists).some((host) => canonicalHost(host) === undefined)
      ? BAD_DOMAIN
      : Object.values(lists).flat().length > ALIASES_MAX && BAD_ALIASES
    if (message) context.addIssue({ code: 'custom', message })
  })
  .meta({ example: { 'go.example': ['menu'] } })

/** A name as people may write it, in the form of `nameOf`. */
const canonicalName = (name: string): string => {
  const { domain, path } = parseName(name)
  const host = domain === null ? null : (canonicalHost(domain) ?? domain)
  return nameOf({ domain: host, path: canonicalPath(path) })
}

export const BAD_DISPLAY_ALIAS = 'Invalid display_alias: must be one of the aliases of the link'

/** What requests set of the aliases of a link. */
export const aliasFields = {
  aliases: z
    .array(AliasPath, BAD_ALIASES)
    .max(ALIASES_MAX, BAD_ALIASES)
    .meta({
      description:
        'All further paths of the link, in exact case and without the first slash. Only ' +
        'owners of the service can add some, unless IMPORT_ALIASES is `all`.',
      example: ['spring-sale'],
    })
    .nullish()
    .transform((paths) => (paths === null ? [] : paths)),
  domain_aliases: DomainAliases.nullish()
    .transform((lists) => (lists === null ? {} : lists))
    .meta({ description: 'The same on the other domains: a list for each host.' }),
  display_alias: z
    .string(BAD_DISPLAY_ALIAS)
    .overwrite(canonicalName)
    .meta({
      description:
        'The alias that people see; on another domain as `//go.example/menu`. Null: the newest ' +
        'on the domain of the link.',
    })
    .nullish(),
}
