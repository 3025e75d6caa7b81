import type { AccountId } from '../accounts/store.ts'
import type { Author } from '../db/author.ts'
import type { Authored, DataOf } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import type { Clock } from '../lib/clock.ts'
import { canonicalHost, findHostProblem } from './address.ts'
import { APP_KINDS, type AppKind, type appFiles, parseAppFile } from './app-files.ts'
import { DOMAINS_MAX, type Domain, type DomainFields, type domains } from './domains.ts'

/** Changes of the domains with their validation, for the command line and the dashboard. */

/** Gives links and aliases of a domain to the primary one, and returns them. */
interface MovedLinks {
  leaveDomain(command: Authored & { id: number; most: number }): Promise<{
    links: readonly object[]
    aliases: readonly object[]
  }>
}

export interface DomainDeps {
  data: DataOf<{ domains: typeof domains; appFiles: typeof appFiles }> & { links: MovedLinks }
  baseUrl: string
  clock: Clock
}

/** What an owner of the service sets. Absent: as before, or the default of a new domain. */
export interface DomainInput {
  host: string
  /** An account: only it may use the domain. */
  for?: 'owners' | 'all' | AccountId | undefined
  codes?: 'own' | 'all' | undefined
  rootUrl?: string | null | undefined
  notFoundUrl?: string | null | undefined
}

const refused = (text: string) => new AppError('invalid_value', text)

/** Throws `invalid_value`, whose text names what is wrong. */
export async function addDomain(
  deps: DomainDeps,
  author: Author,
  input: DomainInput,
): Promise<DomainFields> {
  const host = canonicalHost(input.host.trim())
  const problem = findHostProblem(host)
  if (host === undefined || problem) throw refused(`the domain ${problem}`)
  if (host === primaryHost(deps)) throw refused(`${host} is the host of BASE_URL`)
  const fields = fieldsOf(deps, { ...input, host }, DEFAULTS)
  const done = await deps.data.domains.add({ ...fields, author })
  if (done === 'exists') throw refused(`${host} is a domain already`)
  if (done === 'too_many') throw refused(`there are ${DOMAINS_MAX} domains, the maximum`)
  return fields
}

/** Texts of files; null removes one, and an absent one stays. */
export type AppFiles = Partial<Record<AppKind, string | null | undefined>>

/** The primary domain has files only. Throws `invalid_value`, with nothing changed. */
export async function setDomain(
  deps: DomainDeps,
  author: Author,
  { apple, android, ...input }: DomainInput & AppFiles,
): Promise<Pick<DomainFields, 'host'> & Partial<DomainFields>> {
  const sent = { apple, android }
  const files = APP_KINDS.flatMap((kind) => {
    const text = sent[kind]
    if (text === undefined) return []
    return [{ kind, content: text === null ? null : parseAppFile(kind, text) }]
  })
  const { id, ...fields } = await setFields(deps, author, input)
  for (const file of files) {
    const isSaved = await deps.data.appFiles.save({ ...file, author, domainId: id })
    if (!isSaved) throw unknown(fields.host)
  }
  return fields
}

async function setFields(deps: DomainDeps, author: Author, input: DomainInput) {
  const { host: text, ...changes } = input
  if (canonicalHost(text.trim()) === primaryHost(deps)) {
    const hasChanges = Object.values(changes).some((value) => value !== undefined)
    if (hasChanges) throw refused(`${text} is the host of BASE_URL: it has app files only`)
    return { id: PRIMARY_ID, host: primaryHost(deps) }
  }
  const before = requireDomain(deps, text)
  const { id, host } = before
  const fields = fieldsOf(deps, { ...input, host }, before)
  if (!(await deps.data.domains.set({ ...fields, author, id }))) throw unknown(host)
  return { id, ...fields }
}

/** Links and aliases per write: bounds how long other writes wait. */
const MOVED_AT_ONCE = 500

/**
 * Removes a domain. With `movesLinks`, its links and aliases get the primary domain, where codes
 * answer already. Throws `invalid_value`, with nothing changed, if something uses the domain, or if
 * the primary domain has one of the aliases.
 */
export async function removeDomain(
  { data, ...deps }: DomainDeps,
  author: Author,
  { host: text, movesLinks }: { host: string; movesLinks: boolean },
): Promise<string> {
  const { id, host } = requireDomain({ data, ...deps }, text)
  if (movesLinks) {
    const conflicts = data.domains.conflictsOf(id).join(', ')
    const primary = primaryHost(deps)
    if (conflicts !== '') throw refused(`${primary} has aliases of ${host} already: ${conflicts}`)
    // A part that is not full is the last one, so that new links cannot keep this from ending.
    for (let isMore = true; isMore; ) {
      const { links, aliases } = await data.links.leaveDomain({ author, id, most: MOVED_AT_ONCE })
      isMore = Math.max(links.length, aliases.length) === MOVED_AT_ONCE
    }
  }
  const result = await data.domains.remove({ author, id })
  if (result === undefined) throw unknown(host)
  if (result === 'removed') return host
  const { links, aliases } = result
  throw refused(
    `${counted(links, 'link')} and ${counted(aliases, 'alias')} use ${host}: ` +
      '--move-links gives them the primary domain',
  )
}

const counted = (n: number, word: 'link' | 'alias') =>
  `${n} ${n === 1 ? word : word === 'alias' ? 'aliases' : 'links'}`

const unknown = (host: string) => refused(`${host.slice(0, 100)} is not a domain of this service`)

function requireDomain({ data }: Pick<DomainDeps, 'data'>, text: string): Domain {
  const host = canonicalHost(text.trim())
  const found = host === undefined ? undefined : data.domains.findByHost(host)
  if (!found) throw unknown(text)
  return found
}

const primaryHost = ({ baseUrl }: Pick<DomainDeps, 'baseUrl'>): string =>
  canonicalHost(new URL(baseUrl).hostname) ?? ''

const DEFAULTS = {
  access: 'owners',
  accountId: null,
  codes: 'own',
  rootUrl: null,
  notFoundUrl: null,
} as const

function fieldsOf(
  deps: DomainDeps,
  { host, for: user, codes, rootUrl, notFoundUrl }: DomainInput,
  before: Omit<DomainFields, 'host'>,
): DomainFields {
  const access =
    typeof user === 'number'
      ? ({ access: 'account', accountId: user } as const)
      : { access: user ?? before.access, accountId: user ? null : before.accountId }
  return {
    host,
    ...access,
    codes: codes ?? before.codes,
    rootUrl: pageOf(deps, { name: 'root_url', url: rootUrl, host }, before.rootUrl),
    notFoundUrl: pageOf(
      deps,
      { name: 'not_found_url', url: notFoundUrl, host },
      before.notFoundUrl,
    ),
  }
}

const URL_LENGTH_MAX = 2048

/**
 * The page as a `Location`; `before` if none is given. A new page must not be one of the service:
 * it could loop.
 */
function pageOf(
  { data, baseUrl }: DomainDeps,
  { name, url: text, host }: { name: string; url: string | null | undefined; host: string },
  before: string | null,
): string | null {
  if (text === undefined || text === before) return before
  if (text === null) return null
  const url = URL.parse(text.trim())
  const isPage = url && /^https?:$/.test(url.protocol) && url.username === ''
  if (!isPage || url.href.length > URL_LENGTH_MAX) {
    throw refused(`${name} must start with http:// or https:// and have at most 2,048 characters`)
  }
  const target = canonicalHost(url.hostname) ?? url.hostname
  const own = [host, primaryHost({ baseUrl }), ...data.domains.list().map((one) => one.host)]
  if (own.includes(target)) throw refused(`${name} must not be a page of this service itself`)
  return url.href
}
