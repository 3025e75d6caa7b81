import { generatedBody } from '../../http/unsent.ts'
import { isoTime } from '../../lib/clock.ts'
import { CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { EXPORT_BYTES, exportLinks } from '../../links/export.ts'
import type { Link, PublicUrls } from '../../links/link.ts'
import { type DetailedLink, withDetails } from '../../links/properties.ts'
import {
  type LinkProperties,
  propertiesView,
  SETTABLE_PROPERTIES,
} from '../../links/property-table.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse } from '../responses.ts'
import { filterOf, parseTableQuery } from '../ui/link-table.ts'

/** The links of the account that the list shows as one file, generated while it is sent. */
export const exportPages = signedInPages({
  'GET /app/links/export.csv': async ({ deps, user, query }) => {
    const hold = deps.unsent.hold(user.account.id)
    hold.take(EXPORT_BYTES)
    const chunks = exportLinks(deps, user.account.id, filterOf(parseTableQuery(query)))
    return csvResponse(deps, await generatedBody(csvOf(deps, chunks), hold))
  },
})

/** A file with a few links. */
export const exportSome = (deps: DashboardDeps, links: readonly Link[]): Response =>
  csvResponse(deps, HEAD + linkLines(deps, withDetails(deps, links)))

function csvResponse(
  { clock }: DashboardDeps,
  body: ReadableStream<Uint8Array> | string,
): Response {
  const day = isoTime(clock()).slice(0, 10)
  return fileResponse(body, { name: `hopcode-links-${day}.csv`, type: CSV_TYPE })
}

type CellOf = (link: DetailedLink, addresses: PublicUrls) => string | number | null

const COLUMNS: Readonly<Record<string, CellOf>> = {
  code: ({ code }) => code,
  short_url: ({ code }, addresses) => addresses.short(code),
  url: ({ url }) => url,
  created_at: ({ createdAt }) => isoTime(createdAt),
  hits: ({ hitCount }) => hitCount,
}
const CELLS = Object.values(COLUMNS)
const PROPERTY_NAMES = SETTABLE_PROPERTIES.map(({ name }) => name)
const HEAD = csvLine([...Object.keys(COLUMNS), ...PROPERTY_NAMES])

function propertyCells(properties: LinkProperties): (string | number | null)[] {
  const view = propertiesView(properties)
  return PROPERTY_NAMES.map((name) => {
    const value = view[name]
    if (Array.isArray(value)) return value.join(', ')
    return typeof value === 'boolean' ? String(value) : value
  })
}

const linkLines = ({ addresses }: DashboardDeps, links: readonly DetailedLink[]): string =>
  links
    .map((link) => {
      const cells = CELLS.map((cellOf) => cellOf(link, addresses))
      return csvLine([...cells, ...propertyCells(link.properties)])
    })
    .join('')

async function* csvOf(
  deps: DashboardDeps,
  chunks: AsyncGenerator<DetailedLink[], void, undefined>,
): AsyncGenerator<string, void, undefined> {
  let head = HEAD
  for await (const links of chunks) {
    yield head + linkLines(deps, links)
    head = ''
  }
}
