import { isoTime, parseIsoTime } from '../lib/clock.ts'
import { decodePercent } from '../lib/percent.ts'
import { MAX_HITS_MAX, NOTE_MAX, TAG_MAX, TAGS_MAX, TITLE_MAX } from '../links/property-table.ts'
import { type KeptPassword, keptPassword } from './kept-password.ts'
import { HITS_MAX } from './line.ts'
import { isObject, type SourceRow } from './source.ts'
import { destinationsIn, isTargeting } from './targeting.ts'

/**
 * The meaning of a source's values, by their names. One table for all sources: services use the
 * same few names. Letter case, spaces, `_` and `-` make no difference; a name in an object follows
 * that of the object.
 */

const NAMES = {
  url: [
    'longurl',
    'destinationurl',
    'destination',
    'originalurl',
    'longlink',
    'long',
    'target',
    'targeturl',
    'url',
  ],
  /** A short URL, or only its path. */
  short: ['shorturl', 'shortlink', 'bitlink', 'tinyurl', 'link'],
  path: [
    'shortcode',
    'slug',
    'slashtag',
    'path',
    'keyword',
    'alias',
    'address',
    'backhalf',
    'key',
    'code',
    'source',
    'short',
  ],
  secret: ['secretkey'],
  otherPaths: ['custombitlinks'],
  domain: ['domainfullname', 'domain', 'hostname'],
  title: ['title'],
  note: ['note', 'notes', 'comment', 'comments', 'description'],
  tags: ['tags', 'tag'],
  created: ['createdat', 'datecreated', 'creationdate', 'created', 'timestamp', 'date'],
  hits: [
    'visitssummarytotal',
    'visitscount',
    'visitcount',
    'visits',
    'totalclicks',
    'clicks',
    'clickcount',
    'hitcount',
    'hits',
    'counter',
  ],
  starts: ['startsat', 'validsince', 'metavalidsince'],
  expires: [
    'expiresat',
    'expirationdate',
    'expiration',
    'validuntil',
    'metavaliduntil',
    'expirein',
    'expirytime',
    'expires',
  ],
  maxHits: ['maxhits', 'maxvisits', 'metamaxvisits', 'clickslimit'],
  expiredUrl: ['expiredurl'],
  forwardQuery: ['forwardquery', 'redirectwithquery', 'forwardparameters'],
  noIndex: ['noindex'],
  disabled: ['paused', 'banned', 'disabled', 'isdisabled', 'disabledat', 'isdeleted', 'deleted'],
  archived: ['archived'],
  password: ['password'],
  isProtected: ['haspassword'],
} as const satisfies Record<string, readonly string[]>

type Field = keyof typeof NAMES

/** Says that a link of Shlink has rules. */
const RULES_FLAG = 'hasredirectrules'
/** What Hopcode does not have. */
const LOST = ['cloaking', 'unsafe', 'deeplinks', 'rewrite', 'spliturl', RULES_FLAG]

/** The earlier name of a field comes first. */
const FIELD_OF = new Map<string, { field: Field; rank: number }>(
  Object.entries(NAMES).flatMap(([field, names]) =>
    names.map((name, rank) => [name, { field: field as Field, rank }] as const),
  ),
)

export const plainName = (name: string): string => name.toLowerCase().replace(/[\s_-]/g, '')

/** The value of a column with this name is read. */
export const isRead = (name: string): boolean =>
  FIELD_OF.has(plainName(name)) || isWhole(plainName(name))

/** An object of this name is one value. */
const isWhole = (plain: string): boolean => LOST.includes(plain) || isTargeting(plain)

/** Whether a row with these names has a destination. */
export const hasUrl = (names: Iterable<string>): boolean =>
  [...names].some((name) => FIELD_OF.get(plainName(name))?.field === 'url')

/** How a source differs from what its names say. */
export interface Dialect {
  /** Paths work in any letter case. */
  isAnyCase?: boolean
  /** Links forward the query unless the row says otherwise. */
  forwardsQuery?: boolean
  /** The path behind an address is added, or inserted where the destination has a template. */
  addsPaths?: boolean
  dateFormat?: 'dmy' | 'mdy' | undefined
}

/** A link as its source describes it. */
export interface SourceLink {
  line: number
  domain: string | undefined
  /** Decoded, the main one first. Empty: the row names none. An empty text: the domain itself. */
  paths: string[]
  isAnyCase: boolean
  url: string
  /** The path behind its address is added to its destination. */
  appendsPath: boolean
  /** The fields of `ImportLine` that need no decision. */
  fields: Record<string, unknown>
  hits: number
  isDisabled: boolean
  hasPassword: boolean
  /** Undefined if the password cannot be kept. */
  password: KeptPassword | undefined
  lost: string[]
  /** What was changed. */
  notes: string[]
  /** Why the row cannot be imported. */
  problem: { outcome: 'bad_row' | 'invalid_path'; message: string } | undefined
}

type Values = Partial<Record<Field, unknown>>

/** `unread`: gets the names of columns that have a value, and no meaning here. */
export function linkOf(
  { line, values: raw }: SourceRow,
  dialect: Dialect,
  unread?: Set<string>,
): SourceLink {
  const { values, lost, destinations } = readValues(raw, unread)
  const link: SourceLink = {
    line,
    ...addressesOf(values),
    isAnyCase: dialect.isAnyCase === true,
    url: dialect.addsPaths ? textOf(values.url).replace(PATH_AT_END, '') : textOf(values.url),
    appendsPath: dialect.addsPaths === true,
    fields: destinations.length > 0 ? { destinations } : {},
    hits: 0,
    isDisabled: isTrue(values.disabled),
    hasPassword: isTrue(values.isProtected) || isPassword(values.password),
    password: keptPassword(values.password),
    lost,
    notes: [],
    problem: undefined,
  }
  if (link.paths.includes('\0')) {
    link.problem = { outcome: 'invalid_path', message: 'The short URL has a malformed % sign' }
  }
  if (dialect.addsPaths && link.url.includes('{{')) {
    link.problem ??= { outcome: 'bad_row', message: 'Its destination has a template' }
  }
  setTexts(link, values)
  setTimes(link, values, dialect)
  setNumbers(link, values, dialect)
  return link
}

/** Both templates of golink that add the path as it adds it without one. */
const PATH_AT_END = /\{\{(?: ?\.Path ?\}\}|with \.Path\}\}\/\{\{\.\}\}\{\{end\}\})$/

/** Names of columns that are noted, and characters of each. */
const UNREAD_MAX = { names: 50, characters: 60 }
/** A number that the other service gave to a row. */
const OWN_IDS = ['id', 'domainid']

function readValues(raw: SourceRow['values'], unread: Set<string> | undefined) {
  const values: Values = {}
  const ranks: Partial<Record<Field, number>> = {}
  const lost: string[] = []
  const targets: Record<string, unknown> = {}
  /** Whether the name has a meaning. */
  const read = (name: string, value: unknown): boolean => {
    const known = FIELD_OF.get(name)
    const hasMeaning = known !== undefined || isWhole(name)
    if (value === null || value === undefined || value === '') return hasMeaning
    if (known && known.rank < (ranks[known.field] ?? Number.POSITIVE_INFINITY)) {
      values[known.field] = value
      ranks[known.field] = known.rank
    }
    if (LOST.includes(name) && isTrue(value)) lost.push(name)
    if (isTargeting(name) && isTrue(value)) targets[name] = value
    return hasMeaning
  }
  for (const [name, value] of Object.entries(raw)) {
    const plain = plainName(name)
    const isRead =
      !isObject(value) || isWhole(plain)
        ? read(plain, value)
        : Object.entries(value)
            .map(([inner, one]) => read(plain + plainName(inner), one))
            .includes(true)
    if (isRead || !unread || OWN_IDS.includes(plain) || !isTrue(value)) continue
    if (unread.size < UNREAD_MAX.names) unread.add(name.slice(0, UNREAD_MAX.characters))
  }
  const targeting = destinationsIn(targets)
  const { destinations } = targeting
  // The rules themselves say which of them are lost.
  const flags = 'redirectrules' in targets ? lost.filter((name) => name !== RULES_FLAG) : lost
  return { values, destinations, lost: [...flags, ...targeting.lost] }
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''

/** A word for no, 0, an empty list or object, or nothing: false. A date: true. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return !/^(|0|false|no|n|f|off|null|undefined)$/i.test(String(value ?? '').trim())
}

/** A text may be the password itself, also “0” or “no”: such a link must not become open. */
const isPassword = (value: unknown): boolean =>
  typeof value === 'string' ? !/^(|false|null)$/i.test(value.trim()) : isTrue(value)

/** The domain and the paths: those of the short URL, or else of columns of their own. */
function addressesOf({ short, path, secret, otherPaths, domain }: Values) {
  const named = textOf(domain).toLowerCase() || undefined
  const own = withoutSlashes(textOf(path))
  const first = parseShortUrl(textOf(short))
  const further = textsOf(otherPaths).map((text) => {
    const one = parseShortUrl(text)
    return one && { ...one, domain: one.domain ?? first?.domain }
  })
  const all = [first, ...further].filter((one) => one !== undefined)
  // A domain of one's own can be moved here; that of the service itself cannot.
  const host = all.find((one) => one.domain !== BITLY_DOMAIN)?.domain ?? first?.domain
  const [main = own, ...others] = all.filter((one) => one.domain === host).map((one) => one.path)
  const ending = textOf(secret)
  const paths = [ending === '' ? main : `${main}/${ending}`, ...others]
  return { domain: host ?? named, paths: all.length > 0 || own !== '' ? paths : [] }
}

const BITLY_DOMAIN = 'bit.ly'

/** The texts of a list. A CSV file has it as one text, perhaps as JSON. */
const textsOf = (list: unknown): string[] =>
  Array.isArray(list) ? list.map(textOf) : textOf(list).split(/[\s,;|"[\]]+/)

/** The lookbehind keeps the time linear: other positions of a row of slashes fail at once. */
const withoutSlashes = (path: string): string => path.replace(/^\/+/, '').replace(/(?<!\/)\/+$/, '')

/** Undefined for an empty text. A path of `\0` is malformed. */
function parseShortUrl(text: string): { domain: string | undefined; path: string } | undefined {
  if (text === '') return undefined
  const bare = text.replace(/^https?:\/\//i, '')
  const slash = bare.indexOf('/')
  if (slash < 0 && bare === text) return { domain: undefined, path: text }
  const domain = (slash < 0 ? bare : bare.slice(0, slash)).toLowerCase()
  const path =
    slash < 0
      ? ''
      : bare
          .slice(slash + 1)
          .replace(/[?#].*$/s, '')
          .replace(/\/$/, '')
  return { domain: domain || undefined, path: decodePercent(path) ?? '\0' }
}

function setTexts(link: SourceLink, values: Values): void {
  const { fields, notes } = link
  const cut = (name: string, text: string, most: number) => {
    const characters = [...text]
    if (characters.length <= most) return text
    notes.push(`the ${name} was cut to ${most} characters`)
    return characters.slice(0, most).join('').trim()
  }
  const title = textOf(values.title)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  const note = textOf(values.note)
    .toWellFormed()
    .replace(/[^\P{Cc}\t\r\n]/gu, '')
    .trim()
  if (title !== '') fields.title = cut('title', title, TITLE_MAX)
  if (note !== '') fields.note = cut('note', note, NOTE_MAX)
  const tags = tagsOf(values.tags).map((tag) => cut('tag', tag, TAG_MAX))
  if (isTrue(values.archived)) tags.push('archived')
  if (tags.length > TAGS_MAX) notes.push(`only ${TAGS_MAX} of ${tags.length} tags were imported`)
  if (tags.length > 0) fields.tags = [...new Set(tags)].slice(0, TAGS_MAX)
  const expired = textOf(values.expiredUrl)
  if (/^https?:/i.test(expired)) fields.expired_url = expired
}

/** A list of texts or of objects with names, or one text with `,`, `|` or `;`. */
function tagsOf(value: unknown): string[] {
  const list = Array.isArray(value)
    ? value.map((one) => textOf(isObject(one) ? one.name : one))
    : textOf(value).split([',', '|', ';'].find((sign) => textOf(value).includes(sign)) ?? ',')
  return list
    .map((tag) =>
      tag
        .toWellFormed()
        .replace(/[,\p{Cc}]+/gu, ' ')
        .replace(/\s+/gu, ' ')
        .trim(),
    )
    .filter((tag) => tag !== '')
}

function setTimes(link: SourceLink, values: Values, { dateFormat }: Dialect): void {
  const times = { created_at: values.created, starts_at: values.starts, expires_at: values.expires }
  for (const [name, value] of Object.entries(times)) {
    if (value === undefined || value === 0 || value === '0') continue
    // MySQL writes an absent date as zeros.
    if (name !== 'created_at' && /^0000-00-00/.test(textOf(value))) continue
    const time = parseDate(value, dateFormat)
    if (time === 'impossible' && name !== 'created_at') {
      link.problem ??= { outcome: 'bad_row', message: `${name} ${textOf(value)} does not exist` }
    } else if (time === 'ambiguous') {
      const hint = 'Choose the order of dates (--date-format dmy or mdy)'
      const message = `Which part of ${textOf(value)} is the day? ${hint}`
      link.problem ??= { outcome: 'bad_row', message }
    } else if (typeof time !== 'number') link.notes.push(`${name} ${textOf(value)} is no date`)
    else link.fields[name] = isoTime(time)
  }
}

const DAY_FIRST = /^(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T,]+(\d\d:\d\d(?::\d\d)?))?/
const ISO =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i
/** ISO 8601 has four digits of a year. */
const TIME_MAX = Date.UTC(9999, 11, 31)

/**
 * Epoch ms; undefined if it is no date, `impossible` for a day or an hour that does not exist. A
 * time without a zone is UTC.
 */
export function parseDate(
  value: unknown,
  dateFormat?: 'dmy' | 'mdy',
): number | undefined | 'ambiguous' | 'impossible' {
  const text = textOf(value)
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1000
  if (/^\d{12,13}$/.test(text)) return Number(text)
  const other = DAY_FIRST.exec(text)
  if (other && !dateFormat) return 'ambiguous'
  const iso = other ? reordered(other, dateFormat === 'dmy') : text
  const [, day, time = '00:00', zone = 'Z'] = ISO.exec(iso) ?? []
  if (!day) return undefined
  const offset = zone.length === 3 ? `${zone}:00` : zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')
  const epoch = parseIsoTime(`${day}T${time}${offset.toUpperCase()}`)
  if (epoch === undefined) return 'impossible'
  return epoch > TIME_MAX || epoch < 0 ? undefined : epoch
}

function reordered(
  [, one = '', two = '', year, time = '00:00']: RegExpExecArray,
  isDayFirst: boolean,
) {
  const [day, month] = isDayFirst ? [one, two] : [two, one]
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}T${time}`
}

function setNumbers(link: SourceLink, values: Values, { forwardsQuery }: Dialect): void {
  const { fields, notes } = link
  const hits = wholeNumber(values.hits)
  if (hits !== undefined && hits >= 0 && hits <= HITS_MAX) link.hits = hits
  else if (values.hits !== undefined) notes.push(`${textOf(values.hits)} is no number of hits`)
  const most = wholeNumber(values.maxHits)
  if (most !== undefined && most >= 1) fields.max_hits = Math.min(most, MAX_HITS_MAX)
  const forwards = values.forwardQuery
  if (forwards === undefined ? forwardsQuery : isTrue(forwards)) fields.forward_query = true
  if (isTrue(values.noIndex)) fields.no_index = true
}

function wholeNumber(value: unknown): number | undefined {
  const text = textOf(value).replace(/(?<=\d)[,.\s](?=\d{3}\b)/g, '')
  return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
}
