import { domainCell, readDomainId } from '../addresses/address.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import { isoTime } from '../lib/clock.ts'
import type { RuledDestination } from './destination-rules.ts'
import type { ParsedUrl } from './link.ts'

/**
 * The optional properties of a link. Each is defined in `SETTABLE`, once: its name is that of the
 * column of `links` (that of a domain has its id), of the field of the API and the form, and of the
 * CSV column. Everything else
 * about a property is derived from here. A new one also needs its column in `db/schema.ts` and a
 * migration.
 */

/** Maximum characters of a tag. */
export const TAG_MAX = 40
/** Maximum number of tags of one link. */
export const TAGS_MAX = 20
export const MAX_HITS_MAX = 1_000_000_000
/** Maximum characters of a title and of a note. */
export const TITLE_MAX = 200
export const NOTE_MAX = 2000

/** What happens to the path behind an address. */
export const FORWARDINGS = ['off', 'append'] as const

interface Definition {
  /** How its values are stored, sent and shown. */
  kind: Kind
  /** Label of the form control. */
  label: string
  /** Sentence for readers of the API description. */
  description: string
  /** Redirects depend on it. */
  isRule?: true
  /** Maximum characters of a text. */
  max?: number
}

const SETTABLE = {
  title: {
    kind: 'line',
    label: 'Title',
    description: 'Shown in the dashboard only.',
    max: TITLE_MAX,
  },
  tags: {
    kind: 'tags',
    label: 'Tags, separated by commas',
    description: 'Stored in small letters.',
  },
  note: {
    kind: 'text',
    label: 'Note',
    description: 'Shown in the dashboard only.',
    max: NOTE_MAX,
  },
  paused: {
    kind: 'flag',
    label: 'Paused',
    description: 'Visitors get 404. The code stays reserved.',
    isRule: true,
  },
  starts_at: {
    kind: 'time',
    label: 'Starts',
    description: 'Visitors get 404 before this time.',
    isRule: true,
  },
  expires_at: {
    kind: 'time',
    label: 'Expires',
    description: 'From this time on visitors get 410, or `expired_url`.',
    isRule: true,
  },
  max_hits: {
    kind: 'count',
    label: 'Maximum hits',
    description: 'After so many hits visitors get 410, or `expired_url`.',
    isRule: true,
  },
  expired_url: {
    kind: 'url',
    label: 'Destination after expiry',
    description: 'Where visitors are redirected after the link has expired.',
    isRule: true,
  },
  forward_query: {
    kind: 'flag',
    label: 'Add the query string of each visit to the destination',
    description:
      'The query of a request is added to the destination, and replaces parameters of the same ' +
      'name. A query of more than 4,096 characters is not added.',
    isRule: true,
  },
  forward_path: {
    kind: 'forwarding',
    label: 'Add the path behind the address to the destination',
    description:
      '`append`: `/{code}/a/b` leads to the destination with `/a/b` behind its path, where no ' +
      'other link has that path. Not for destinations with a fragment.',
    isRule: true,
  },
  no_index: {
    kind: 'flag',
    label: 'Ask search engines not to list the short link',
    description: 'Redirects have the header `X-Robots-Tag: noindex`.',
    isRule: true,
  },
  destinations: {
    kind: 'destinations',
    label: 'Destinations by rule',
    description:
      'Destinations for some visitors or times: the first whose conditions all hold, else `url`. ' +
      'At most 20, of 16 KiB as JSON.',
    isRule: true,
  },
  domain: {
    kind: 'domain',
    label: 'Domain',
    description:
      'The host that the short URL begins with: one of `GET /api/domains`. Null: that of the ' +
      'service. For a new link, absent: the default domain of the account.',
  },
} as const satisfies Record<string, Definition>

/** Not set like the others. */
const TABLE = {
  ...SETTABLE,
  /** When a scheduled deletion takes effect, which can be undone until then. */
  delete_at: { kind: 'time', isRule: true },
  /** Requests send the password itself, and views only say whether there is one. */
  password: { kind: 'hash', isRule: true },
} as const

/** The values of each kind in the program. Null or an empty list: not set. */
interface Values {
  line: string | null
  text: string | null
  url: string | null
  tags: string[]
  flag: boolean
  /** Null: off. */
  forwarding: 'append' | null
  /** Epoch ms. */
  time: number | null
  count: number | null
  destinations: RuledDestination[]
  /** Of a password: Argon2id, or bcrypt until an imported link is first opened. */
  hash: string | null
  /** Its id. Requests and views have its host, or null for the primary one. */
  domain: number
}
type StoredKind = keyof Values
export type Kind = Exclude<StoredKind, 'hash'>
type Cell = string | number | null

/** How the values of a kind are stored in a column. Those of other kinds are stored as they are. */
interface Format<Value> {
  read(cell: Cell): Value
  write(value: Value): Cell
}

const LIST = {
  read: (cell: Cell) => (cell === null ? [] : JSON.parse(cell as string)),
  write: (list: readonly unknown[]) => (list.length === 0 ? null : JSON.stringify(list)),
}

const FORMATS: { readonly [Name in StoredKind]?: Format<Values[Name]> } = {
  domain: {
    read: (cell) => readDomainId(cell as number | null),
    write: domainCell,
  },
  flag: {
    read: (cell) => cell === 1,
    write: (value) => (value ? 1 : 0),
  },
  tags: LIST,
  destinations: LIST,
}

export type PropertyName = keyof typeof TABLE
export type SettableName = keyof typeof SETTABLE

/** The properties of a link. Tags are in alphabetical order. */
export type LinkProperties = { [Name in PropertyName]: Values[(typeof TABLE)[Name]['kind']] }

interface Property {
  name: PropertyName
  kind: StoredKind
  isRule?: true
}

export interface SettableProperty extends Definition {
  name: SettableName
}

/** Properties in the order of the table. */
export const PROPERTIES: readonly Property[] = namedEntries(TABLE)
export const SETTABLE_PROPERTIES: readonly SettableProperty[] = namedEntries(SETTABLE)

function namedEntries<Name extends string, Entry>(table: Readonly<Record<Name, Entry>>) {
  return (Object.keys(table) as Name[]).map((name) => ({ name, ...table[name] }))
}

/** The columns of `links` that store properties, by their cells. */
export type PropertiesRow = Record<PropertyName, Cell>

/** Selects a `PropertiesRow` of `links`. */
export const PROPERTY_COLUMNS = PROPERTIES.map(({ name, kind }) =>
  kind === 'domain' ? `domain_id AS ${name}` : name,
).join(', ')

/** The names of the columns, in the order of `cellsOf`. */
export const PROPERTY_CELLS = PROPERTIES.map(({ name, kind }) =>
  kind === 'domain' ? 'domain_id' : name,
)

const formatOf = (kind: StoredKind) => FORMATS[kind] as Format<unknown> | undefined

export const readProperties = (row: PropertiesRow): LinkProperties =>
  mapped(({ name, kind }) => formatOf(kind)?.read(row[name]) ?? row[name]) as LinkProperties

/** Values of the columns. */
export const cellsOf = (properties: LinkProperties): Cell[] =>
  PROPERTIES.map((property) => cellOf(property, properties))

function cellOf({ name, kind }: Property, properties: LinkProperties): Cell {
  const format = formatOf(kind)
  return format ? format.write(properties[name]) : (properties[name] as Cell)
}

export function propertiesView(
  { namedHost }: Pick<PublicUrls, 'namedHost'>,
  properties: LinkProperties,
): PropertyJson {
  const { password, ...view } = mapped(({ name, kind }) => {
    const value = properties[name]
    if (kind === 'domain') return namedHost(value as number)
    if (kind === 'forwarding') return value ?? 'off'
    return kind === 'time' && value !== null ? isoTime(value as number) : value
  })
  return { ...view, protected: password !== null } as PropertyJson
}

/** The path that is added would be part of the fragment. */
export const cannotForward = (
  { forward_path: forwarding, destinations }: Pick<LinkProperties, 'forward_path' | 'destinations'>,
  url: string | null,
): boolean =>
  forwarding !== null && [{ url }, ...destinations].some((one) => one.url?.includes('#') === true)

const mapped = <Value>(read: (property: Property) => Value) =>
  Object.fromEntries(PROPERTIES.map((one) => [one.name, read(one)])) as Record<PropertyName, Value>

export const NO_PROPERTIES: Readonly<LinkProperties> = readProperties(mapped(() => null))

export const startsAfterExpiry = ({
  starts_at,
  expires_at,
}: Pick<LinkProperties, 'starts_at' | 'expires_at'>): boolean =>
  starts_at !== null && expires_at !== null && starts_at >= expires_at

/** Kinds whose cells are texts that count. */
const TEXT_KINDS: readonly StoredKind[] = ['line', 'text', 'url', 'destinations']
const TEXTS = PROPERTIES.filter(({ kind }) => TEXT_KINDS.includes(kind))

const COUNTED = ['url', ...TEXTS.map(({ name }) => name)]

/**
 * SQL: UTF-8 bytes of a link's URL, properties and aliases, which count towards the account's
 * quota. `has`: whether `links` has the column, which an older database may lack.
 */
export const storedBytes = (has: (column: string) => boolean = () => true): string =>
  [
    ...COUNTED.filter(has).map((name) => `coalesce(octet_length(${name}), 0)`),
    '(SELECT coalesce(sum(octet_length(value)), 0) FROM json_each(tags))',
    '(SELECT coalesce(sum(octet_length(path)), 0) FROM aliases WHERE link_id = links.id)',
  ].join(' + ')

/** The same bytes of the properties. */
export const bytesOfProperties = (properties: LinkProperties): number =>
  [...TEXTS.map((text) => cellOf(text, properties) as string | null), ...properties.tags].reduce(
    (sum, text) => sum + Buffer.byteLength(text ?? ''),
    0,
  )

type Optional<Type> = { [Name in keyof Type]?: Type[Name] | undefined }

/** The properties that a change sets; absent ones stay. */
export interface PropertiesPatch extends Optional<Omit<LinkProperties, 'tags' | 'delete_at'>> {
  /** Replaces all tags. */
  tags?: readonly string[] | undefined
  addTags?: readonly string[] | undefined
  removeTags?: readonly string[] | undefined
}

/** A change as a request makes it: its URL may still be on the blocklist. */
export interface PropertiesChange extends Omit<PropertiesPatch, 'expired_url' | 'password'> {
  expired_url?: ParsedUrl | null | undefined
  /** The password itself. */
  password?: string | null | undefined
}

/** The same with a domain by its host, or null for the primary one. */
export type PropertiesFields = Omit<PropertiesChange, 'domain'> & {
  domain?: string | null | undefined
}

/** JSON of each kind. */
interface JsonValues extends Omit<Values, 'time' | 'domain' | 'forwarding'> {
  time: string | null
  domain: string | null
  forwarding: (typeof FORWARDINGS)[number]
}
/** The properties as the API returns them. */
export type PropertyJson = {
  [Name in Exclude<PropertyName, 'password'>]: JsonValues[(typeof TABLE)[Name]['kind']]
} & { protected: boolean }
