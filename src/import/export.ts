import type { AccountId } from '../accounts/store.ts'
import { type Address, isSameAddress } from '../addresses/address.ts'
import type { StoredAlias } from '../addresses/names.ts'
import { aliasLists } from '../addresses/schema.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import { eventOf } from '../history/schema.ts'
import { isoTime } from '../lib/clock.ts'
import type { DetailedLink } from '../links/properties.ts'
import { NO_PROPERTIES, propertiesView, SETTABLE_PROPERTIES } from '../links/property-table.ts'
import { importersCsv } from '../lists/csv.ts'
import { exportPiece, type ListKit } from '../lists/export.ts'
import { HEADER_FIELD } from './line.ts'

export const EXPORT_FORMATS = ['jsonl', 'csv'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

interface ExportQuery {
  format: ExportFormat
  /** Links after this id; 0 for the beginning of the file; negative: events, see `historyPage`. */
  above: number
  /** Whether JSON Lines have the events of the account, which are for its admins. */
  withHistory?: boolean
}

/**
 * The next part of a file with all links of an account, oldest first, with everything that an
 * import accepts; without those whose deletion is scheduled. JSON Lines end with the events of the
 * account, unless they are left out. `next`: absent at the end.
 */
export async function exportPage(
  deps: ListKit,
  accountId: AccountId,
  { format, above, withHistory = true }: ExportQuery,
): Promise<{ text: string; next: number | undefined }> {
  if (above < 0) return historyPage(deps, accountId, above)
  const isCsv = format === 'csv'
  const { links: all, next } = await exportPiece(deps, { accountId, above })
  const links = all.filter(({ properties }) => properties.delete_at === null)
  const aliases = isCsv ? new Map() : deps.data.aliases.ofLinks(links.map(({ id }) => id))
  const lines = isCsv
    ? importersCsv.lines(deps.addresses, links)
    : links.map((link) => jsonLine(deps.addresses, link, aliases.get(link.id) ?? [])).join('')
  const header = { [HEADER_FIELD]: 1, exported_at: isoTime(deps.clock()) }
  const head = isCsv ? importersCsv.head : `${JSON.stringify(header)}\n`
  const hasEvents = !isCsv && withHistory
  return { text: (above === 0 ? head : '') + lines, next: next ?? (hasEvents ? -1 : undefined) }
}

/** Events after the id `-1 - above`. An import skips their lines, as the first one of the file. */
async function historyPage({ data }: ListKit, accountId: AccountId, above: number) {
  const events = await data.history.above({ accountId, above: -1 - above }, { background: true })
  const lines = events.map((event) => {
    const line = { [HEADER_FIELD]: 1, event: { ...eventOf(event), codes: JSON.parse(event.codes) } }
    return `${JSON.stringify(line)}\n`
  })
  const last = events.at(-1)
  return { text: lines.join(''), next: last && -1 - last.id }
}

/** The whole file, in chunks that are read on demand. */
export async function* exportFile(
  deps: ListKit,
  accountId: AccountId,
  format: ExportFormat,
  { withHistory = true } = {},
): AsyncGenerator<string, void, undefined> {
  for (let above: number | undefined = 0; above !== undefined; ) {
    const page: { text: string; next: number | undefined } = await exportPage(deps, accountId, {
      format,
      above,
      withHistory,
    })
    yield page.text
    above = page.next
  }
}

/** One line of Hopcode's own format. Only what is set. */
function jsonLine(
  addresses: PublicUrls,
  { code, typedCode, url, createdAt, hitCount, properties, alias: displayed }: DetailedLink,
  aliases: readonly StoredAlias[],
): string {
  const view = propertiesView(addresses, properties)
  const none = propertiesView(addresses, NO_PROPERTIES)
  const set = SETTABLE_PROPERTIES.flatMap(({ name }) =>
    JSON.stringify(view[name]) === JSON.stringify(none[name]) ? [] : [[name, view[name]]],
  )
  // The displayed one is first: an import displays the first one.
  const isShown = (one: Address) => Number(displayed !== null && isSameAddress(one, displayed))
  const sorted = aliases.toSorted((one, other) => isShown(other) - isShown(one))
  const [first] = sorted
  const isFirst = first?.anyCase === 0 || aliases.every(({ anyCase }) => anyCase === 1)
  const chosen = first && displayed && (first.displayed === 1 || !isFirst) ? first : undefined
  const exact = aliasLists(
    addresses,
    sorted.filter((one) => one.anyCase === 0),
  )
  const anyCase = aliasLists(
    addresses,
    sorted.filter((one) => one.anyCase === 1),
  )
  const line = {
    code: typedCode ?? code,
    url,
    created_at: isoTime(createdAt),
    hits: hitCount || undefined,
    aliases: orAbsent(exact.aliases),
    aliases_any_case: orAbsent(anyCase.aliases),
    domain_aliases: orAbsent(exact.domain_aliases),
    domain_aliases_any_case: orAbsent(anyCase.domain_aliases),
    display_alias: chosen && addresses.textOf(chosen),
    ...Object.fromEntries(set),
    protected: view.protected || undefined,
  }
  return `${JSON.stringify(line)}\n`
}

const orAbsent = <List extends object>(list: List) =>
  Object.keys(list).length > 0 ? list : undefined
