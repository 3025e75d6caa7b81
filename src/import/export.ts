import type { AccountId } from '../accounts/store.ts'
import { isoTime } from '../lib/clock.ts'
import { csvLine } from '../lib/csv.ts'
import type { AliasReads } from '../links/aliases.ts'
import { type ExportDeps, exportAll } from '../links/export.ts'
import type { PublicUrls } from '../links/link.ts'
import type { DetailedLink } from '../links/properties.ts'
import { NO_PROPERTIES, propertiesView, SETTABLE_PROPERTIES } from '../links/property-table.ts'
import { HEADER_FIELD } from './line.ts'

export interface ExportFileDeps extends Omit<ExportDeps, 'pages'> {
  addresses: PublicUrls
  aliases: Pick<AliasReads, 'ofLinks'>
}

export const EXPORT_FORMATS = ['jsonl', 'csv'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/**
 * All links of an account, oldest first, with everything that an import accepts; without those
 * whose deletion is scheduled. In chunks that are read on demand.
 */
export async function* exportFile(
  deps: ExportFileDeps,
  accountId: AccountId,
  { format, now }: { format: ExportFormat; now: number },
): AsyncGenerator<string, void, undefined> {
  const isCsv = format === 'csv'
  const header = { [HEADER_FIELD]: 1, exported_at: isoTime(now) }
  // With the first links: until then a failure has its own status.
  let head = isCsv ? csvLine(CSV_HEAD) : `${JSON.stringify(header)}\n`
  for await (const all of exportAll(deps, accountId)) {
    const links = all.filter(({ properties }) => properties.delete_at === null)
    const aliases = isCsv ? new Map() : deps.aliases.ofLinks(links.map(({ id }) => id))
    const lines = links.map((link) =>
      isCsv ? csvRow(deps.addresses, link) : jsonLine(link, aliases.get(link.id) ?? []),
    )
    yield head + lines.join('')
    head = ''
  }
}

/** With spaces: the importers of other services read these headings. */
const CSV_HEAD = ['Short URL', 'Short code', 'Long URL', 'Title', 'Tags', 'Created at', 'Hits']

const csvRow = (
  addresses: PublicUrls,
  { code, url, properties: { title, tags }, createdAt, hitCount }: DetailedLink,
): string =>
  csvLine([addresses.short(code), code, url, title, tags.join(', '), isoTime(createdAt), hitCount])

/** One line of Hopcode's own format. Only what is set. */
function jsonLine(
  { code, url, createdAt, hitCount, properties }: DetailedLink,
  aliases: readonly { path: string; anyCase: number }[],
): string {
  const view = propertiesView(properties)
  const none = propertiesView(NO_PROPERTIES)
  const set = SETTABLE_PROPERTIES.flatMap(({ name }) =>
    String(view[name]) === String(none[name]) ? [] : [[name, view[name]]],
  )
  const paths = (anyCase: number) =>
    aliases.filter((alias) => alias.anyCase === anyCase).map(({ path }) => path)
  const line = {
    code,
    url,
    created_at: isoTime(createdAt),
    hits: hitCount || undefined,
    aliases: orAbsent(paths(0)),
    aliases_any_case: orAbsent(paths(1)),
    ...Object.fromEntries(set),
  }
  return `${JSON.stringify(line)}\n`
}

const orAbsent = (paths: readonly string[]) => (paths.length > 0 ? paths : undefined)
