import type { AccountId } from '../accounts/store.ts'
import type { ScanCalls } from '../db/subject.ts'
import { ID_MAX } from './count-index.ts'
import { isFiltered, type LinkFilter } from './link-sources.ts'
import type { LinkPages } from './lists.ts'
import type { ExportedRows, exportScans, Piece } from './pieces.ts'
import { type DetailDeps, type DetailedLink, withDetails } from './properties.ts'

export interface ExportDeps extends DetailDeps {
  data: { links: ScanCalls<typeof exportScans> }
  pages: Pick<LinkPages, 'findPage'>
}

/**
 * Every link of an account that the filter selects, newest first, in pieces that are read on
 * demand. Contains each link that exists during the whole export once, and without a filter no link
 * that is created meanwhile. Throws `search_timeout`.
 */
export async function* exportLinks(
  deps: ExportDeps,
  accountId: AccountId,
  filter: LinkFilter,
): AsyncGenerator<DetailedLink[], void, undefined> {
  let below = ID_MAX + 1
  for (;;) {
    const { links, isLast } = await nextPiece(deps, { ...filter, accountId, below })
    yield withDetails(deps, links)
    if (isLast) return
    below = links.at(-1)?.id ?? 0
  }
}

/** The next links of an account after the id `above`, oldest first. */
export async function exportPiece(
  deps: Omit<ExportDeps, 'pages'>,
  about: { accountId: AccountId; above: number },
): Promise<{ links: DetailedLink[]; next: number | undefined }> {
  const { links, isLast } = await deps.data.links.above(about, { background: true })
  return { links: withDetails(deps, links), next: isLast ? undefined : links.at(-1)?.id }
}

async function nextPiece(
  { data, pages }: ExportDeps,
  query: Piece & LinkFilter,
): Promise<ExportedRows> {
  if (!isFiltered(query)) {
    const { accountId, below } = query
    // A background read, because lists for pages run first.
    return data.links.below({ accountId, below }, { background: true })
  }
  const { links } = await pages.findPage({ ...query, limit: MATCHES_MAX, offset: 0 })
  return { links, isLast: links.length < MATCHES_MAX }
}

/** Links of one page of matches. */
const MATCHES_MAX = 50
