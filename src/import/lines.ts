import type { Account } from '../accounts/store.ts'
import type { domains } from '../addresses/domains.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import { authorOf } from '../db/author.ts'
import type { DataOf } from '../db/subject.ts'
import { REFUSALS } from '../errors.ts'
import { newCode } from '../lib/code.ts'
import { batchSlices } from '../lib/time-slices.ts'
import { refusalOfUrls } from '../links/check.ts'
import type { Kit } from '../links/kit.ts'
import { packSecrets } from '../links/link.ts'
import { withHash } from '../links/link-passwords.ts'
import {
  cannotForward,
  type LinkProperties,
  NO_PROPERTIES,
  startsAfterExpiry,
} from '../links/property-table.ts'
import { addStored, NOTHING_STORED, type Stored } from '../links/quota.ts'
import { BAD_FORWARDING, BAD_TIMES } from '../links/schema.ts'
import { urlKey } from '../links/url.ts'
import { charactersOf, type ImportRow, PASSWORDS_PER_CALL, parseLine } from './line.ts'
import { isCreated, type RowResult, refused } from './outcomes.ts'
import type { ImportMessage, ImportResult, imports, StoredRow } from './store.ts'

export type ImportKit = Kit & {
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
  deps: ImportKit,
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
  deps: ImportKit,
  account: Account,
  rows: readonly (ImportRow | RowResult)[],
  { dryRun = false, before = NOTHING_STORED, isOperator = false }: ImportOptions = {},
): Promise<Imported> {
  const allowed = {
    aliases: isOperator || deps.aliasRules.mayAdd(account.id),
    destinations: isOperator || deps.destinationPolicy.mayAdd(account.id),
    hosts: hostsFor(deps, account, { isOperator }),
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
  const resultOf = (row: ImportRow) => {
    const result = compared.results.get(row) ?? results.get(row)
    return isAllowed(row) || result?.outcome === 'exists' ? result : row.refusal
  }
  return {
    results: checked.map((row) => (isRow(row) ? (resultOf(row) as RowResult) : row)),
    stored,
  }
}

const isAllowed = ({ refusal }: ImportRow): boolean => refusal === undefined

async function sendAll(
  deps: ImportKit,
  account: Account,
  rows: readonly ImportRow[],
  send: ReturnType<typeof importer>,
) {
  let stored = NOTHING_STORED
  const results = new Map<ImportRow, RowResult>()
  for (let at = 0; at < rows.length; ) {
    const sent = rowsOfCall(rows, at)
    at += sent.length
    const message = await messageOf(deps, account, sent)
    const result = await send(message, sent)
    const found = JSON.parse(result.results) as RowResult[]
    const now = deps.clock()
    for (const [i, row] of sent.entries()) results.set(row, noted(found[i] as RowResult, row, now))
    collectGarbage(message.rows.length)
    stored = addStored(stored, result.stored)
  }
  return { results, stored }
}

/** The domains that links of an import may have, the primary one first. */
export function hostsFor(
  { addresses, data: { domains } }: Pick<ImportKit, 'addresses' | 'data'>,
  account: Account,
  { isOperator = false }: Pick<ImportOptions, 'isOperator'> = {},
): string[] {
  const others = isOperator ? domains.list() : domains.listFor(account.id)
  return [...new Set([addresses.primary.host, ...others.map(({ host }) => host)])]
}

/** Replaces the password of each row by its hash, and rows with too many of them by a refusal. */
async function hashPasswords(
  { passwords }: ImportKit,
  account: Account,
  rows: (ImportRow | RowResult)[],
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
function rowsOfCall(rows: readonly ImportRow[], start: number): ImportRow[] {
  let room = CHARACTERS_PER_CALL
  const next = rows.slice(start, start + ROWS_PER_CALL)
  const end = next.findIndex((row) => {
    room -= charactersOf(row)
    return room < 0
  })
  return end < 0 ? next : next.slice(0, Math.max(1, end))
}

const isRow = (row: ImportRow | RowResult): row is ImportRow => !('outcome' in row)

/** Decides about rows without writing them. */
function planner({ data }: ImportKit, before: Stored) {
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
function importer(deps: ImportKit, account: Account) {
  const plan = (message: ImportMessage) => deps.data.imports.plan(message, { background: true })
  return async (message: ImportMessage, rows: readonly ImportRow[]): Promise<ImportResult> => {
    const first = await plan(await messageOf(deps, account, rows.slice(0, FIRST_ROWS)))
    const planned = isUnchanged(first) ? await plan(message) : undefined
    return planned && isUnchanged(planned) ? planned : write(deps, message)
  }
}

const isUnchanged = ({ stored, restored }: ImportResult): boolean =>
  stored.links === 0 && restored.length === 0

/** A background call: other writes come first. */
async function write({ data }: ImportKit, message: ImportMessage): Promise<ImportResult> {
  return data.imports.add(message, { background: true, isAcknowledged: true })
}

/** The row if it may be stored, or else its result. */
function checkRow(
  { aliasRules, blocklist, destinationPolicy }: ImportKit,
  row: ImportRow | RowResult,
  allowed: { aliases: boolean; destinations: boolean; hosts: readonly string[] },
): ImportRow | RowResult {
  if ('outcome' in row) return row
  const { url, properties } = row
  const aliases = [...row.aliases, ...row.aliasesAnyCase]
  const paths = aliases.map(({ path }) => path)
  const named = [properties.domain, ...aliases.map(({ host }) => host)]
  const unknown = named.find((host) => host != null && !allowed.hosts.includes(host))
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
  if (paths.length > 0 && !allowed.aliases) {
    return { ...row, refusal: refused('not_allowed', REFUSALS.alias_not_allowed.message()) }
  }
  const blocked = refusalOfUrls(blocklist, { ...properties, url })
  if (blocked) return { ...row, refusal: refused('blocked', blocked.message) }
  const { starts_at = null, expires_at = null, forward_path: forwarding = null } = properties
  const { destinations = [] } = properties
  if (startsAfterExpiry({ starts_at, expires_at })) return refused('bad_row', BAD_TIMES)
  if (cannotForward({ forward_path: forwarding, destinations }, url?.text ?? null)) {
    return refused('bad_row', BAD_FORWARDING)
  }
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

const NOT_ALLOWED = REFUSALS.destinations_not_allowed.message()
const NO_COUNTRIES = 'Destinations by country match nobody without COUNTRY_FILE or COUNTRY_HEADER'

function propertiesOf(
  { properties, passwordHash }: ImportRow,
  { idOf }: Pick<PublicUrls, 'idOf'>,
): LinkProperties {
  const { expired_url: expired, password: _, domain, ...rest } = properties
  const set = Object.entries(rest).filter(([, value]) => value !== undefined)
  return {
    ...NO_PROPERTIES,
    ...Object.fromEntries(set),
    tags: [...new Set(rest.tags ?? [])].sort(),
    expired_url: expired?.text ?? null,
    password: passwordHash ?? null,
    domain: idOf(domain ?? null),
  }
}

async function messageOf(
  { addresses, clock, hasher, plans }: ImportKit,
  account: Account,
  rows: readonly ImportRow[],
): Promise<ImportMessage> {
  const now = clock()
  const { addressOf, textOf } = addresses
  const prepared = await batchSlices.map(rows, LINES_AT_ONCE, (row) => {
    const { code, typedCode, url, createdAt, hits } = row
    const aliases = row.aliases.map(addressOf)
    const aliasesAnyCase = row.aliasesAnyCase.map(addressOf)
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
      displayed: row.displayed && addressOf(row.displayed),
      createdAt: createdAt !== null && isPlausible(createdAt, now) ? createdAt : now,
      hits,
      properties: hasProperties ? propertiesOf(row, addresses) : undefined,
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

const isPlausible = (createdAt: number, now: number): boolean => createdAt > 0 && createdAt <= now

/** The result of a row with what an import has changed in its link. */
function noted(result: RowResult, { createdAt, note }: ImportRow, now: number): RowResult {
  if (!isCreated(result.outcome)) return result
  const notes = [result.message, note]
  if (createdAt !== null && !isPlausible(createdAt, now)) {
    notes.push('The date of creation is not plausible: the time of the import is used')
  }
  return { ...result, message: notes.filter(Boolean).join('. ') }
}
