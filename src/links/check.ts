import { isDeepStrictEqual } from 'node:util'
import type { Account, AccountId } from '../accounts/store.ts'
import { type AliasPatch, patchAliases, type StoredAlias } from '../addresses/names.ts'
import { AppError } from '../errors.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { RuledDestination } from './destination-rules.ts'
import type { Kit } from './kit.ts'
import { type NewUrlFilter, type ParsedUrl, parseKnownUrl } from './link.ts'
import type { LinkChange } from './link-change.ts'
import { withHash } from './link-passwords.ts'
import { type LinkProperties, NO_PROPERTIES, type PropertiesPatch } from './property-table.ts'
import { Url } from './url.ts'

/** Decides about new links and changes as far as that needs no writer, in one order. */

/** What is asked of a link. Its texts are well-formed. */
export interface LinkInput extends LinkChange {
  url?: ParsedUrl | undefined
  /** Only of a new link, of the form of a code in any letter case. Absent: a generated one. */
  code?: string | null | undefined
}

/** The same as the writer takes it: nothing of it is refused so far. */
export interface Draft {
  url: ParsedUrl | undefined
  code: Code | undefined
  /** The letters of the code, if they are not those of the code itself. */
  typedCode: string | null
  patch: PropertiesPatch
  aliases: AliasPatch | undefined
}

/** What links have. It is not refused if they are to keep it: its host may be blocked since. */
interface Before {
  url?: string | null
  /** Of each link that is changed. */
  properties?: readonly LinkProperties[]
  aliases?: readonly StoredAlias[]
}

const NOTHING: Before = { properties: [NO_PROPERTIES] }

const BAD_ALIAS_OWNER = 'Invalid aliases: only owners of the service can add some'

/**
 * `before`: absent for a new link. Throws `alias_not_allowed`, `path_taken`,
 * `destinations_not_allowed`, `invalid_value`, then `code_in_use`, then `url_blocked` or
 * `own_host`, then `busy`.
 */
export async function check(
  deps: Kit,
  account: Pick<Account, 'id'>,
  input: LinkInput,
  before = NOTHING,
): Promise<Draft> {
  const { url, code: typed, aliases, expired_url: expired, ...change } = input
  const code = typed ? toCode(typed) : undefined
  if (aliases) requireAliases(deps, account.id, aliases, before)
  const added = addedTo(before, input)
  deps.destinationPolicy.requireAllowed(account.id, added.rules)
  const refusal = refusalOfUrls(deps.blocklist, added)
  if (refusal) {
    // A code in use is reported before a blocked URL.
    if (code && deps.data.links.findByCode(code)) throw new AppError('code_in_use', code)
    throw refusal
  }
  const patch = await withHash(deps.passwords, account.id, change)
  const expired_url = expired === undefined ? undefined : (expired?.text ?? null)
  const typedCode = code && typed && typed !== code ? typed : null
  return { url, code, typedCode, aliases, patch: { ...patch, expired_url } }
}

function requireAliases(
  { aliasRules }: Kit,
  accountId: AccountId,
  patch: AliasPatch,
  before: Before,
): void {
  const { added } = patchAliases(before.aliases ?? [], patch)
  if (before === NOTHING && added.length > 0 && !aliasRules.mayAdd(accountId)) {
    throw new AppError('invalid_value', BAD_ALIAS_OWNER)
  }
  aliasRules.requireAllowed(accountId, added)
}

interface Urls {
  url?: ParsedUrl | null | undefined
  expired_url?: ParsedUrl | null | undefined
  destinations?: readonly Pick<RuledDestination, 'url'>[] | undefined
}

/** What one of the links does not have yet. */
function addedTo(
  { url: urlBefore, properties = [] }: Before,
  { url, expired_url: expired, destinations = [] }: LinkInput,
): Urls & { rules: RuledDestination[] } {
  const isNew = (has: (link: LinkProperties) => boolean) => !properties.every(has)
  const hasUrl = (rule: RuledDestination) => (link: LinkProperties) =>
    link.destinations.some((one) => one.url === rule.url)
  const hasRule = (rule: RuledDestination) => (link: LinkProperties) =>
    link.destinations.some((one) => isDeepStrictEqual(one, rule))
  return {
    url: url?.text === urlBefore ? undefined : url,
    expired_url:
      expired && isNew((link) => link.expired_url === expired.text) ? expired : undefined,
    destinations: destinations.filter((rule) => isNew(hasUrl(rule))),
    rules: destinations.filter((rule) => isNew(hasRule(rule))),
  }
}

/** The error with which the first URL that may be no destination is refused. */
export function refusalOfUrls(
  blocklist: NewUrlFilter,
  { url, expired_url, destinations = [] }: Urls,
): AppError | undefined {
  for (const one of [url, expired_url]) {
    const refusal = one && blocklist.refusalOf(one)
    if (refusal) return refusal
  }
  for (const one of destinations) {
    const refusal = blocklist.refusalOf(parseKnownUrl(one.url))
    if (refusal) return refusal
  }
  return undefined
}

/** The URL if it may be shortened, or the error with which `shorten` refuses it. */
export function checkUrl(
  { blocklist }: Pick<Kit, 'blocklist'>,
  text: unknown,
): ParsedUrl | AppError {
  const { success, data, error } = Url.safeParse(text)
  if (!success) return new AppError('invalid_value', error.issues[0]?.message)
  return blocklist.refusalOf(data) ?? data
}
