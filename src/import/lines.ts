import type { Account } from '../accounts/store.ts'
import type { Address, NamedAddress } from '../addresses/address.ts'
import type { domains } from '../addresses/domains.ts'
import type { AliasRules } from '../addresses/names.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import { authorOf } from '../db/author.ts'
import type { DataOf } from '../db/subject.ts'
import { REFUSALS } from '../errors.ts'
import { newCode } from '../lib/code.ts'
import { batchSlices } from '../lib/time-slices.ts'
import { refusalOfUrls } from '../links/check.ts'
import type { WriteDeps } from '../links/create.ts'
import { packSecrets } from '../links/link.ts'
import { withHash } from '../links/link-passwords.ts'
import {
  type LinkProperties,
  NO_PROPERTIES,
  type PropertiesChange,
  startsAfterExpiry,
} from '../links/property-table.ts'
import { addStored, NOTHING_STORED, quotaError, type Stored } from '../links/quota.ts'
import { BAD_TIMES } from '../links/schema.ts'
import { urlKey } from '../links/url.ts'
import { charactersOf, type ImportRow, PASSWORDS_PER_CALL, parseLine } from './line.ts'
import { type RowResult, refused } from './outcomes.ts'
import type { ImportMessage, ImportResult, imports, StoredResult, StoredRow } from './store.ts'

export interface ImportDeps
  extends Pick<
    WriteDeps,
    'blocklist' | 'clock' | 'destinationPolicy' | 'hasher' | 'passwords' | 'plans'
  > {
  aliasRules: AliasRules
  addresses: PublicUrls
  data: DataOf<{ imports: typeof imports; domains: typeof domains }>
}

interface ImportOptions {
  /** Nothing is written: the rows are compared with what is stored. */
  dryRun?: boolean | undefined
  /** What the dry run of the rows before would have stored, for the quota. */
  before?: Stored | undefined
  /** The operator imports: every account gets aliases. */
  isOperator?: boolean
}

interface Imported {
  /** One for each line, in their order. */
  results: RowResult[]
  /** What was stored, or would be. */
  stored: Stored
}

/** Bounds of one call of the writer, during which other writes wait: up to 70 ms. */
const ROWS_PER_CALL = 1000
const CHARACTERS_PER_CALL = 1024 * 1024
/** Lines per time slice: about a millisecond. */
const LINES_AT_ONCE = 50

/** `importRows` of lines of Hopcode's own format. A bad line fails alone. */
export async function importLines(
  deps: ImportDeps,
  account: Account,
  lines: readonly string[],
  options: ImportOptions = {},
): Promise<Imported> {
  return importRows(deps, account, await batchSlices.map(lines, LINES_AT_ONCE, parseLine), options)
}

/**
 * Creates a link for each row that is new. The same rows again change nothing. Throws
 * `invalid_api_key` if the account or the key is not active.
 */
export async function importRows(
  deps: ImportDeps,
  account: Account,
  rows: readonly (ImportRow | RowResult)[],
  { dryRun = false, before = NOTHING_STORED, isOperator = false }: ImportOptions = {},
): Promise<Imported> {
  const allowed = {
    aliases: isOperator || deps.aliasRules.mayAdd(account.id),
    destinations: isOperator || deps.destinationPolicy.mayAdd(account.id),
    domains: domainsFor(deps, account, { isOperator }),
  }
  const checked = await batchSlices.map(rows, LINES_AT_ONCE, (row) => checkRow(deps, row, allowed))
  collectGarbage(rows.length * CHARACTERS_OF_LINE)
  if (!dryRun) await hashPasswords(deps, account, checked)
  const found = checked.filter(isRow)
  // A row that is stored already adds nothing, so that it is not refused.
  const others = found.filter((row) => !isAllowed(row))
  const compared = await sendAll(deps, account, others, (message) =>
    deps.data.imports.compare(message, { background: true }),
  )
  const send = dryRun ? planner(deps, before) : importer(deps, account)
  const { results, stored } = await sendAll(deps, account, found.filter(isAllowed), send)
  const resultOf = (row: CheckedRow) => {
    const result = compared.results.get(row) ?? results.get(row)
    return isAllowed(row) || result?.outcome === 'exists' ? result : row.refusal
  }
  return {
    results: checked.map((row) => (isRow(row) ? (resultOf(row) as RowResult) : row)),
    stored,
  }
}

const isAllowed = ({ refusal }: CheckedRow): boolean => refusal === undefined

async function sendAll(
  deps: ImportDeps,
  account: Account,
  rows: readonly CheckedRow[],
  send: ReturnType<typeof importer>,
) {
  let stored = NOTHING_STORED
  const results = new Map<CheckedRow, RowResult>()
  for (let at = 0; at < rows.length; at = results.size) {
    const sent = rowsOfCall(rows, at)
    const message = await messageOf(deps, account, sent)
    const result = await send(message, sent)
    const found = JSON.parse(result.results) as StoredResult[]
    for (const [i, row] of sent.entries()) {
      results.set(row, rowResult(deps, account, row, found[i] as StoredResult))
    }
    collectGarbage(message.rows.length)
    stored = addStored(stored, result.stored)
  }
  return { results, stored }
}

/** A row that may be stored. */
interface CheckedRow
  extends Omit<ImportRow, 'aliases' | 'aliasesAnyCase' | 'displayed' | 'properties'> {
  aliases: readonly Address[]
  aliasesAnyCase: readonly Address[]
  displayed: Address | null
  properties: PropertiesChange
  /** Its result, unless it is stored already. */
  refusal?: RowResult
}

/** The ids of domains by their hosts; that of the primary one also by null. */
type Domains = ReadonlyMap<string | null, number>

/** The domains that links of an import may have, the primary one first. */
function domainsFor(
  { addresses, data: { domains } }: Pick<ImportDeps, 'addresses' | 'data'>,
  account: Account,
  { isOperator = false }: Pick<ImportOptions, 'isOperator'> = {},
): Domains {
  const { primary } = addresses
  const others = isOperator ? domains.list() : domains.listFor(account.id)
  const beside = others.filter(({ host }) => host !== primary.host)
  const byHost = [primary, ...beside].map(({ host, id }) => [host, id] as const)
  return new Map([[null, primary.id], ...byHost])
}

/** Their hosts. */
export const hostsFor = (...args: Parameters<typeof domainsFor>): string[] =>
  [...domainsFor(...args).keys()].filter((host) => host !== null)

/** Replaces the password of each row by its hash, and rows with too many of them by a refusal. */
async function hashPasswords(
  { passwords }: ImportDeps,
  account: Account,
  rows: (CheckedRow | RowResult)[],
): Promise<void> {
  let hashed = 0
  for (const [at, row] of rows.entries()) {
    if (!isRow(row) || row.refusal || typeof row.properties.password !== 'string') continue
    if (++hashed > PASSWORDS_PER_CALL) {
      rows[at] = refused('bad_row', `At most ${PASSWORDS_PER_CALL} passwords fit in one request`)
      continue
    }
    const { password: passwordHash, ...properties } = await withHash(
      passwords,
      account.id,
      row.properties,
    )
    rows[at] = { ...row, properties, passwordHash: passwordHash ?? undefined }
  }
}

/** The next rows that one call may have. */
function rowsOfCall(rows: readonly CheckedRow[], start: number): CheckedRow[] {
  let room = CHARACTERS_PER_CALL
  const next = rows.slice(start, start + ROWS_PER_CALL)
  const end = next.findIndex((row) => {
    room -= charactersOf(row)
    return room < 0
  })
  return end < 0 ? next : next.slice(0, Math.max(1, end))
}

const isRow = (row: CheckedRow | RowResult): row is CheckedRow => !('outcome' in row)

/** Decides about rows without writing them. */
function planner({ data }: ImportDeps, before: Stored) {
  let planned = before
  return async (message: ImportMessage): Promise<ImportResult> => {
    const args = { ...message, before: planned }
    const result = await data.imports.plan(args, { background: true })
    planned = addStored(planned, result.stored)
    return result
  }
}

/** Characters after which a garbage collection is worth its time, about 15 ms. */
const GARBAGE_CHARACTERS = 2 * 1024 * 1024
/** A line leaves about 6 KB of garbage besides its text, and counts as this many characters. */
const CHARACTERS_OF_LINE = 1000
let garbage = 0

/** The engine would wait until the heap has tripled. */
function collectGarbage(characters: number): void {
  garbage += characters
  if (garbage < GARBAGE_CHARACTERS) return
  garbage = 0
  Bun.gc(true)
}

/** How many rows show whether the file has been imported before. */
const FIRST_ROWS = 8

/**
 * Where the first rows are not new, the reader decides about all: rows that exist, which are most
 * if a file is imported again, take no time of the writer and no room in the log of a cluster.
 */
function importer(deps: ImportDeps, account: Account) {
  const plan = (message: ImportMessage) => deps.data.imports.plan(message, { background: true })
  return async (message: ImportMessage, rows: readonly CheckedRow[]): Promise<ImportResult> => {
    const first = await plan(await messageOf(deps, account, rows.slice(0, FIRST_ROWS)))
    const planned = isUnchanged(first) ? await plan(message) : undefined
    return planned && isUnchanged(planned) ? planned : write(deps, message)
  }
}

const isUnchanged = ({ stored, restored }: ImportResult): boolean =>
  stored.links === 0 && restored.length === 0

/** A background call: other writes come first. */
async function write({ data }: ImportDeps, message: ImportMessage): Promise<ImportResult> {
  return data.imports.add(message, { background: true, isAcknowledged: true })
}

/** The row if it may be stored, or else its result. */
function checkRow(
  { aliasRules, blocklist, destinationPolicy }: ImportDeps,
  given: ImportRow | RowResult,
  allowed: { aliases: boolean; destinations: boolean; domains: Domains },
): CheckedRow | RowResult {
  if ('outcome' in given) return given
  const aliases = [...given.aliases, ...given.aliasesAnyCase]
  const paths = aliases.map(({ path }) => path)
  const named = [given.properties.domain, ...aliases.map(({ host }) => host)]
  const unknown = named.find((host) => host !== undefined && !allowed.domains.has(host))
  if (unknown) {
    const hint = 'an owner of the service can add it with hopcode domain add'
    return refused('unknown_domain', `${unknown} is not a domain of this service: ${hint}`)
  }
  const reserved = paths.find(aliasRules.isReserved)
  if (reserved !== undefined) {
    return refused(
      'reserved_path',
      `Paths such as /${reserved} are reserved for the service itself`,
    )
  }
  const row = onDomains(allowed.domains, given)
  if (paths.length > 0 && !allowed.aliases) {
    return { ...row, refusal: refused('not_allowed', REFUSALS.alias_not_allowed.message()) }
  }
  const { url, properties } = row
  const blocked = refusalOfUrls(blocklist, { ...properties, url })
  if (blocked) return { ...row, refusal: refused('blocked', blocked.message) }
  const { starts_at = null, expires_at = null, destinations = [] } = properties
  if (startsAfterExpiry({ starts_at, expires_at })) return refused('bad_row', BAD_TIMES)
  if (destinations.length > 0 && !allowed.destinations) {
    const rest = { ...properties, destinations: undefined }
    const note = `Its destinations by rule were left out. ${NOT_ALLOWED}`
    return { ...row, properties: rest, note: joined(row.note, note) }
  }
  const byCountry = destinations.some(({ when }) => when.country)
  return byCountry && !destinationPolicy.hasCountries
    ? { ...row, note: joined(row.note, NO_COUNTRIES) }
    : row
}

const joined = (first: string | undefined, second: string): string =>
  first === undefined ? second : `${first}. ${second}`

/** The row with the ids of its domains. */
function onDomains(domains: Domains, row: ImportRow): CheckedRow {
  const idOf = (host: string | null) => domains.get(host) as number
  const addressesOf = (list: readonly NamedAddress[]) =>
    list.map(({ host, path }) => ({ domainId: idOf(host), path }))
  const { domain } = row.properties
  return {
    ...row,
    aliases: addressesOf(row.aliases),
    aliasesAnyCase: addressesOf(row.aliasesAnyCase),
    displayed: addressesOf(row.displayed ? [row.displayed] : [])[0] ?? null,
    properties: { ...row.properties, domain: domain === undefined ? undefined : idOf(domain) },
  }
}

const NOT_ALLOWED = REFUSALS.destinations_not_allowed.message()
const NO_COUNTRIES = 'Destinations by country match nobody without COUNTRY_FILE or COUNTRY_HEADER'

function propertiesOf({ properties, passwordHash }: CheckedRow) {
  const { expired_url: expired, password: _, ...rest } = properties
  const set = Object.entries(rest).filter(([, value]) => value !== undefined)
  const tags = [...new Set(rest.tags ?? [])].sort()
  const expired_url = expired?.text ?? null
  const password = passwordHash ?? null
  const found = { ...Object.fromEntries(set), tags, expired_url, password }
  return { ...NO_PROPERTIES, ...found } as LinkProperties
}

async function messageOf(
  { addresses, clock, hasher, plans }: ImportDeps,
  account: Account,
  rows: readonly CheckedRow[],
): Promise<ImportMessage> {
  const now = clock()
  const { textOf } = addresses
  const prepared = await batchSlices.map(rows, LINES_AT_ONCE, (row) => {
    const { code, typedCode, url, aliases, aliasesAnyCase, createdAt, hits } = row
    const [alias] = [...aliases, ...aliasesAnyCase]
    const name = code ?? (alias && textOf(alias)) ?? url?.href ?? ''
    // It follows from the row, so that a row that is sent again has it too. No passcode has it.
    const hash = hasher.hash('import', `${account.id} ${name}`)
    const set = [...Object.values(row.properties), row.passwordHash]
    const hasProperties = set.some((value) => value !== undefined)
    const stored: StoredRow = {
      code,
      typedCode,
      candidate: newCode((length) => hash.subarray(0, length)),
      url: url?.text ?? null,
      aliases,
      aliasesAnyCase,
      displayed: row.displayed,
      createdAt: createdAt !== null && createdAt > 0 && createdAt <= now ? createdAt : now,
      hits,
      properties: hasProperties ? propertiesOf(row) : undefined,
    }
    return { stored, secrets: { urlKey: url && urlKey(url), passcodeHash: hash } }
  })
  return {
    author: authorOf(account, now),
    quota: plans[account.plan],
    rows: JSON.stringify(prepared.map(({ stored }) => stored)),
    secrets: packSecrets(prepared.map(({ secrets }) => secrets)),
  }
}

function rowResult(
  { addresses, clock, plans }: ImportDeps,
  account: Account,
  row: CheckedRow,
  [what, code, created, taken]: StoredResult,
): RowResult {
  switch (what) {
    case 'created': {
      const isPaused = row.properties.paused === true
      const outcome = isPaused ? 'created_paused' : created.length > 0 ? 'created_alias' : 'created'
      return { outcome, code, message: notesOf(row, taken.map(addresses.textOf), clock()) }
    }
    case 'exists':
      return { outcome: 'exists', code, message: '' }
    case 'kept':
      return { outcome: 'kept', code, message: 'Your link at this address has another URL' }
    case 'path_taken':
      return refused('path_taken', 'The address is in use')
    default:
      return refused('quota', quotaError(what, plans[account.plan]).message)
  }
}

function notesOf({ createdAt, note }: CheckedRow, taken: readonly string[], now: number): string {
  const notes = taken.map((name) => `The alias ${name} is in use and was left out`)
  if (note !== undefined) notes.push(note)
  const isDated = createdAt === null || (createdAt > 0 && createdAt <= now)
  if (!isDated) notes.push('The date of creation is not plausible: the time of the import is used')
  return notes.join('. ')
}
