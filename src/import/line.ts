import { z } from 'zod'
import { addressText, type NamedAddress, smallPath } from '../addresses/address.ts'
import { ALIASES_MAX } from '../addresses/names.ts'
import {
  AliasPath,
  BAD_ALIASES,
  BAD_DISPLAY_ALIAS,
  canonicalAddress,
  DomainAliases,
  namedAddresses,
} from '../addresses/schema.ts'
import { REFUSALS } from '../errors.ts'
import { CODE_PATTERN, type Code, toCode } from '../lib/code.ts'
import { parseJson } from '../lib/json.ts'
import { timeBody } from '../links/destination-schema.ts'
import type { ParsedUrl } from '../links/link.ts'
import { isKnownHash, LINK_PASSWORD_MAX } from '../links/link-passwords.ts'
import type { PropertiesFields } from '../links/property-table.ts'
import { PropertiesBody, strictBody } from '../links/schema.ts'
import { Url } from '../links/url.ts'
import { type Outcome, type RowResult, refused } from './outcomes.ts'

/**
 * Hopcode's own format: one line of JSON for each link, in exports and imports. A line with an
 * unknown field is refused; the first line of an export says what it is.
 */

/** Hits of one link. */
export const HITS_MAX = 1_000_000_000_000
/** Passwords in one call: ten are hashed in a second, and the client waits. */
export const PASSWORDS_PER_CALL = 50
/** Characters of one line: the longest URL, texts and aliases, with each character escaped. */
const LINE_LENGTH_MAX = 256 * 1024

const BAD_CODE = REFUSALS.invalid_code.message()
const BAD_HITS = `Invalid hits: must be an integer between 0 and ${HITS_MAX}`

const BAD_PASSWORD = `Invalid password: must have 1 to ${LINK_PASSWORD_MAX} characters`
const BAD_HASH = 'Invalid password_hash: must be of bcrypt, with a cost of at most 12'

const Aliases = z.array(AliasPath, BAD_ALIASES).max(ALIASES_MAX, BAD_ALIASES).nullish()
const OtherAliases = DomainAliases.refine(
  (lists) => Object.values(lists).flat().length <= ALIASES_MAX,
  BAD_ALIASES,
).nullish()

export const ImportLine = strictBody(
  {
    code: z
      .string(BAD_CODE)
      .regex(CODE_PATTERN, BAD_CODE)
      .nullish()
      .meta({ description: 'The code that the link gets. Absent: one is generated.' }),
    url: Url.nullable().meta({ description: 'Null for a reserved code.' }),
    aliases: Aliases.meta({ description: 'Further paths, in exact case.' }),
    aliases_any_case: Aliases.meta({ description: 'Further paths, in any case.' }),
    domain_aliases: OtherAliases.meta({
      description: 'Further paths on other domains: a list for each host.',
    }),
    domain_aliases_any_case: OtherAliases.meta({
      description: 'The same, in any case.',
    }),
    display_alias: z
      .string(BAD_DISPLAY_ALIAS)
      .nullish()
      .meta({ description: 'The alias that people see. Absent: the first one.' }),
    created_at: timeBody('created_at').nullish(),
    hits: z.int(BAD_HITS).min(0, BAD_HITS).max(HITS_MAX, BAD_HITS).nullish(),
    protected: z.boolean('Invalid protected: must be true or false').nullish().meta({
      description: 'True: the link had a password, which is not in the file. It is paused.',
    }),
    password: z
      .string(BAD_PASSWORD)
      .min(1, BAD_PASSWORD)
      .max(LINK_PASSWORD_MAX, BAD_PASSWORD)
      .nullish()
      .meta({
        description: 'The password that visitors enter, of any length. It is stored as a hash.',
      }),
    password_hash: z.string(BAD_HASH).refine(isKnownHash, BAD_HASH).nullish().meta({
      description: 'In place of `password`: its bcrypt hash, of a cost of at most 12.',
    }),
    ...PropertiesBody.shape,
  },
  'Invalid line: must be a JSON object',
).meta({ id: 'ImportedLink' })

export interface ImportRow {
  code: Code | null
  /** The code as the file has it, if that is not the code itself. */
  typedCode: string | null
  /** Null for a reserved code. */
  url: ParsedUrl | null
  aliases: readonly NamedAddress[]
  /** Aliases that match in any case: no two of them are the same in small letters. */
  aliasesAnyCase: readonly NamedAddress[]
  /** The alias that people see. Null: the first one. */
  displayed: NamedAddress | null
  createdAt: number | null
  hits: number
  /** With the password itself, where the row has it. */
  properties: PropertiesFields
  passwordHash?: string | undefined
  /** What was left out of the row. */
  note?: string
  /** Its result, unless it is stored already. */
  refusal?: RowResult
}

/** About as many characters as the line of a row has. */
export function charactersOf({ url, aliases, aliasesAnyCase, properties }: ImportRow): number {
  const { title, note, tags = [], expired_url, destinations = [] } = properties
  const urls = [url?.text, expired_url?.text, ...destinations.map((one) => JSON.stringify(one))]
  const paths = [...aliases, ...aliasesAnyCase].map(({ path }) => path)
  const texts = [...urls, title, note, ...paths, ...tags]
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), LINE_CHARACTERS)
}

/** Names, numbers and times of a line. */
const LINE_CHARACTERS = 150

/** Which outcome an invalid field has; any other is `bad_row`. */
const OUTCOME_OF: Readonly<Record<string, Outcome>> = {
  url: 'invalid_url',
  code: 'invalid_path',
  aliases: 'invalid_path',
  aliases_any_case: 'invalid_path',
  domain_aliases: 'invalid_path',
  domain_aliases_any_case: 'invalid_path',
}

/** The row, or why the line is none. */
export function parseLine(text: string): ImportRow | RowResult {
  if (text.length > LINE_LENGTH_MAX) {
    return refused('bad_row', `Invalid line: must have at most ${LINE_LENGTH_MAX} characters`)
  }
  const value = parseJson(text)
  return value === undefined ? refused('bad_row', 'Invalid line: must be JSON') : parseRow(value)
}

/** The row of a parsed line, or why it is none. */
export function parseRow(value: unknown): ImportRow | RowResult {
  if (isHeader(value)) return refused('left_out', 'The first line of an export')
  const { data, error } = ImportLine.safeParse(value)
  if (data) return rowOf(data)
  const [issue] = error.issues
  return refused(OUTCOME_OF[String(issue?.path[0])] ?? 'bad_row', issue?.message ?? '')
}

function rowOf(line: z.output<typeof ImportLine>): ImportRow | RowResult {
  const { code, url, aliases, aliases_any_case, created_at, hits, ...others } = line
  const { domain_aliases, domain_aliases_any_case, display_alias, ...rest } = others
  const { protected: isProtected, password_hash: hash, ...properties } = rest
  const hasPassword = properties.password != null || hash != null
  const isLost = isProtected === true && !hasPassword
  if (url === null && !code) return refused('invalid_url', 'Invalid URL: a code is missing too')
  const own = (code && toCode(code)) || null
  const anyCase = namedIn(aliases_any_case, domain_aliases_any_case)
  return {
    code: own,
    typedCode: code && code !== own ? code : null,
    url,
    aliases: namedIn(aliases, domain_aliases),
    aliasesAnyCase: [
      ...Map.groupBy(anyCase, (one) => smallPath(addressText(one))).values(),
    ].flatMap(([first]) => first ?? []),
    displayed: display_alias ? canonicalAddress(display_alias) : null,
    createdAt: created_at ?? null,
    hits: hits ?? 0,
    properties: isLost ? { ...properties, paused: true } : properties,
    ...(hash != null && { passwordHash: hash }),
    ...(isLost && { note: NO_PASSWORD }),
  }
}

const namedIn = (
  paths: readonly string[] | null | undefined,
  lists: Readonly<Record<string, readonly string[]>> | null | undefined,
): NamedAddress[] => [
  ...(paths ?? []).map((path) => ({ host: null, path })),
  ...namedAddresses(lists ?? {}),
]

const NO_PASSWORD = 'Its password is not in the file: set one, and resume the link'

export const HEADER_FIELD = 'hopcode_export'
const isHeader = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && HEADER_FIELD in value
