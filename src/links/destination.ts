import type { Database } from 'bun:sqlite'
import { LRUCache } from 'lru-cache'
import { domainIdOf } from '../addresses/address.ts'
import type { Alias, AliasReads, AliasScope } from '../addresses/names.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { CodeVersions } from '../hot/code-versions.ts'
import { type Destination, DestinationCache, NO_LINK } from '../hot/destination-cache.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Code } from '../lib/code.ts'
import {
  type CompiledDestination,
  compileDestinations,
  type RuledDestination,
} from './destination-rules.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './link.ts'
import { type LinkProperties, PROPERTIES, type PropertyName } from './property-table.ts'

type Rules = { readonly [Name in PropertyName]?: NonNullable<LinkProperties[Name]> }

/**
 * The properties of a link on which its redirects depend; an absent one is not set. `expired_url`
 * has the form of `Location`, and is absent if its host is blocked.
 */
export interface LinkRules extends Omit<Rules, 'destinations'> {
  readonly destinations?: readonly CompiledDestination[]
}

const RULES = PROPERTIES.filter(({ isRule }) => isRule)

const IS_SET = RULES.map(({ name }) => `nullif(${name}, 0)`).join(', ')
const PAIRS = RULES.map(({ name }) => `'${name}', ${name}`).join(', ')
/** SQL: the columns of rules as a JSON object; null if none is set. */
const RULES_COLUMN = `CASE WHEN coalesce(${IS_SET}) IS NOT NULL
  THEN json_object(${PAIRS}) END`

/** The rules of `RULES_COLUMN` as the JSON of `LinkRules`. */
function encodeRules(column: string, blocklist: UrlFilter): string {
  const row = JSON.parse(column) as Record<PropertyName, unknown>
  const { destinations } = row
  const set = RULES.filter(({ name }) => row[name]).map(({ name, kind }) => {
    if (kind === 'url') return [name, allowedLocation(row[name] as string, blocklist)]
    return [name, kind === 'flag' ? true : row[name]]
  })
  const rules = Object.fromEntries(set)
  if (!destinations) return JSON.stringify(rules)
  const stored = JSON.parse(destinations as string) as RuledDestination[]
  const compiled = compileDestinations(stored, blocklist)
  return asciiJson({ ...FIRST, ...rules, destinations: compiled })
}

/** Destinations come first: see `rulesReader`. */
const FIRST = { destinations: [] }
const HAS_DESTINATIONS = '{"destinations":'

/** JSON with each character outside of ASCII escaped, as the cache of destinations needs it. */
const asciiJson = (value: object): string =>
  JSON.stringify(value).replace(
    /[^\0-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Texts with destinations that a thread keeps parsed, and their characters. */
const PARSED_MAX = 512
const PARSED_CHARACTERS_MAX = 2 * 1024 * 1024

/**
 * HOT PATH. Reads the text of `encodeRules`. Long ones are parsed once: those with destinations.
 */
export function rulesReader(): (text: string) => LinkRules {
  const parsed = new LRUCache<string, LinkRules>({
    max: PARSED_MAX,
    maxSize: PARSED_CHARACTERS_MAX,
    sizeCalculation: (_, text) => text.length,
  })
  return (text) => {
    if (!text.startsWith(HAS_DESTINATIONS)) return JSON.parse(text) as LinkRules
    const known = parsed.get(text)
    if (known) return known
    const rules = JSON.parse(text) as LinkRules
    parsed.set(text, rules)
    return rules
  }
}

function allowedLocation(url: string, blocklist: UrlFilter): string | undefined {
  const parsed = parseKnownUrl(url)
  return blocklist.isBlocked(parsed) ? undefined : locationOf(parsed)
}

interface DestinationRow {
  id: number
  url: string | null
  /** 1 if the operator has disabled the code, or all links of its account. */
  isDisabled: number
  /** `RULES_COLUMN`. */
  rules: string | null
  domainId: number
}

/** Reads what a redirect needs of a link, on any thread. */
export class DestinationReads {
  readonly #blocklist: UrlFilter
  readonly #byCode
  readonly #disabledCode

  constructor(db: Database, blocklist: UrlFilter) {
    this.#blocklist = blocklist
    this.#byCode = db.prepare<DestinationRow, [Code]>(
      `SELECT id, url,
         EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1)
         OR EXISTS (SELECT 1 FROM accounts
                    WHERE id = links.account_id AND links_disabled_at IS NOT NULL) AS isDisabled,
         ${RULES_COLUMN} AS rules, ${domainIdOf('domain_id')} AS domainId
       FROM links WHERE code = ?1`,
    )
    this.#disabledCode = db.prepare<DestinationRow, [Code]>(
      `SELECT ${NO_LINK} AS id, NULL AS url, 1 AS isDisabled, NULL AS rules,
         ${domainIdOf('NULL')} AS domainId
       FROM disabled_codes WHERE code = ?`,
    )
  }

  /** A disabled code is found even after its link was deleted. */
  findByCode(code: Code): Destination | undefined {
    const row = this.#byCode.get(code) ?? this.#disabledCode.get(code)
    if (!row) return undefined
    const parsed = row.url === null ? undefined : parseKnownUrl(row.url)
    const isDisabled =
      row.isDisabled === 1 || (parsed !== undefined && this.#blocklist.isBlocked(parsed))
    const location = parsed === undefined || isDisabled ? null : locationOf(parsed)
    const hasRules = location !== null && row.rules !== null
    return {
      id: row.id,
      location,
      isDisabled,
      rules: hasRules ? encodeRules(row.rules as string, this.#blocklist) : '',
      domainId: row.domainId,
    }
  }
}

/** Few unknown codes are requested repeatedly: typing errors and deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  counters: Pick<RedirectCounters, 'add' | 'set'>
  reads: Pick<DestinationReads, 'findByCode'>
  aliases: Pick<AliasReads, 'findByPath'>
  versions: CodeVersions
  /** Called after the version of a key was read, and before its row is. */
  beforeRead?: () => void
  /** Maximum number of links in memory, and of aliases. */
  max: number
}

/**
 * HOT PATH. The destination of each code, in one redirect thread. Known and unknown codes are kept
 * apart, and both are bounded, so that guessed codes evict no link. An entry that was read before a
 * change is ignored after it. The database is read once per code: whether a link is disabled or its
 * host is blocked is decided then, so that a redirect from memory checks neither.
 */
export class LinkCache {
  readonly #reads: Pick<DestinationReads, 'findByCode'>
  readonly #counters: LinkCacheOptions['counters']
  readonly #known: DestinationCache
  readonly #aliasReads: Pick<AliasReads, 'findByPath'>
  /** The code of each alias in the place of a location: no collection visits it. */
  readonly #aliases: DestinationCache
  /** Unknown codes with their version. */
  readonly #unknown = new LRUCache<Code, number>({ max: UNKNOWN_MAX })
  readonly #beforeRead: () => void

  constructor({ reads, aliases, versions, counters, max, beforeRead }: LinkCacheOptions) {
    this.#beforeRead = beforeRead ?? (() => {})
    this.#counters = counters
    this.#reads = reads
    this.#aliasReads = aliases
    this.#known = new DestinationCache({ max, versions })
    this.#aliases = new DestinationCache({ max, versions, isScoped: true })
  }

  /** Null if the code is unknown; undefined if only the database can tell. */
  findInMemory(code: Code): Destination | null | undefined {
    const known = this.#known.findByKey(code)
    if (known !== undefined) return known
    const version = this.#unknown.get(code)
    return version !== undefined && version === this.#known.versionOf(code) ? null : undefined
  }

  /** Reads the database. Undefined if the code is unknown. */
  lookUp(code: Code): Destination | undefined {
    const version = this.#known.versionOf(code)
    this.#beforeRead()
    const found = this.#reads.findByCode(code)
    if (found) this.#known.set(code, found, version)
    else this.#unknown.set(code, version)
    this.#counters.add(found ? 'foundInDatabase' : 'notInDatabase')
    this.#counters.set('known', this.#known.size)
    this.#counters.set('unknown', this.#unknown.size)
    return found
  }

  /** `path` can be a key. The link may have been deleted since: compare its id. */
  findAliasInMemory(path: string, scope: AliasScope): Alias | undefined {
    const found = this.#aliases.findByKey(path, scope.id)
    return found && { linkId: found.id, code: found.location as Code }
  }

  /** Reads the database. Undefined if there is no such alias. */
  lookUpAlias(path: string, scope: AliasScope): Alias | undefined {
    const version = this.#aliases.versionOf(path)
    this.#beforeRead()
    const found = this.#aliasReads.findByPath(path, scope)
    if (!found) return undefined
    const { linkId: id, code: location } = found
    const entry = { id, location, isDisabled: false, rules: '', domainId: scope.id }
    this.#aliases.set(path, entry, version)
    return found
  }
}

/** Few links have a limit of hits. An entry takes about 200 bytes. */
const LIMITED_MAX = 20_000

/**
 * The hits of links with `max_hits`. Only the control thread follows such links, so that the number
 * stays exact while each redirect adds to it. In a cluster it lacks what the other hosts have not
 * flushed.
 */
export class HitLimits {
  readonly #hits: Pick<HitCounts, 'ofLink'>
  readonly #counts = new LRUCache<Code, number>({ max: LIMITED_MAX })

  constructor(hits: Pick<HitCounts, 'ofLink'>) {
    this.#hits = hits
  }

  /** Reads the database if the number is not in memory. */
  hitsOf(code: Code, id: number): number {
    const known = this.#counts.get(code)
    if (known !== undefined) return known
    const hits = this.#hits.ofLink(id)
    this.#counts.set(code, hits)
    return hits
  }

  /** One more hit of a link whose number was just read. */
  add(code: Code): void {
    this.#counts.set(code, (this.#counts.peek(code) ?? 0) + 1)
  }

  /** The link has changed. */
  drop(code: Code): void {
    this.#counts.delete(code)
  }

  /** All links may have changed, or other hosts have counted hits. */
  clear(): void {
    this.#counts.clear()
  }
}
