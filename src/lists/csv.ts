import type { PublicUrls } from '../addresses/urls.ts'
import { isoTime } from '../lib/clock.ts'
import { BYTE_ORDER_MARK, csvLine } from '../lib/csv.ts'
import type { DetailedLink } from '../links/properties.ts'
import { type PropertyJson, propertiesView, SETTABLE_PROPERTIES } from '../links/property-table.ts'

/** CSV files with links. */

type Cell = string | number | null

interface Shown {
  link: DetailedLink
  addresses: PublicUrls
  properties: PropertyJson
}

const OF_LINK: Readonly<Record<string, (shown: Shown) => Cell>> = {
  code: ({ link }) => link.code,
  short_url: ({ link, addresses }) => addresses.display(link),
  url: ({ link }) => link.url,
  created_at: ({ link }) => isoTime(link.createdAt),
  hits: ({ link }) => link.hitCount,
}
const OF_PROPERTIES = [...SETTABLE_PROPERTIES.map(({ name }) => name), 'protected'] as const

/** All columns by their names, in the order of the dashboard's file. */
const COLUMNS = new Map<string, (shown: Shown) => Cell>([
  ...Object.entries(OF_LINK),
  ...OF_PROPERTIES.map((name) => [name, propertyCell(name)] as const),
])

function propertyCell(name: keyof PropertyJson) {
  return ({ properties }: Shown): Cell => {
    if (name === 'destinations') return jsonCell(properties.destinations)
    const value = properties[name]
    if (Array.isArray(value)) return value.join(', ')
    return typeof value === 'boolean' ? String(value) : value
  }
}

const jsonCell = (list: readonly object[]) => (list.length === 0 ? '' : JSON.stringify(list))

/** The columns that importers of other services read, by their headings. */
const HEADINGS = {
  'Short URL': 'short_url',
  'Short code': 'code',
  'Long URL': 'url',
  Title: 'title',
  Tags: 'tags',
  'Created at': 'created_at',
  Hits: 'hits',
}

/** A kind of file. */
interface LinkCsv {
  head: string
  lines(addresses: PublicUrls, links: readonly DetailedLink[]): string
}

const csvOf = (names: readonly string[], head: string): LinkCsv => ({
  head,
  lines: (addresses, links) =>
    links
      .map((link) => {
        const shown = { link, addresses, properties: propertiesView(addresses, link.properties) }
        return csvLine(names.map((name) => COLUMNS.get(name)?.(shown) ?? null))
      })
      .join(''),
})

const NAMES = [...COLUMNS.keys()]

/** For spreadsheets: everything. */
export const fullCsv = csvOf(NAMES, BYTE_ORDER_MARK + csvLine(NAMES))

export const importersCsv = csvOf(Object.values(HEADINGS), csvLine(Object.keys(HEADINGS)))
