import { Elysia } from 'elysia'
import type { Hold } from '../../http/byte-budget.ts'
import { isoTime } from '../../lib/clock.ts'
import { type ExportedLink, exportLinks } from '../../links/export.ts'
import type { LinkFilter } from '../../links/link-sources.ts'
import { SEARCH_MAX } from '../../links/schema.ts'
import { signedIn } from '../auth/guard.ts'
import { CSV_TYPE, csvLine } from '../csv.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse } from '../responses.ts'

/** The links of the account that the list shows as one file, generated while it is sent. */
export const exportPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.export', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/export.csv', ({ user, query }) => {
      const day = isoTime(deps.clock()).slice(0, 10)
      const hold = deps.unsent.hold(user.account.id)
      hold.take(EXPORT_BYTES)
      return fileResponse(csvOf(deps, exportLinks(deps, user.account.id, filterOf(query)), hold), {
        name: `hopcode-links-${day}.csv`,
        type: CSV_TYPE,
      })
    })

/** Memory of an export whose client does not read: about two chunks. */
const EXPORT_BYTES = 2 * 1024 * 1024

/** The search and the tag of the list, by the names of its own query. */
function filterOf({ q, tag }: Readonly<Record<string, string | undefined>>): LinkFilter {
  const search = [...(q ?? '').trim()].slice(0, SEARCH_MAX).join('')
  return { search, inProperties: true, tag: tag || undefined }
}

type Addresses = DashboardDeps['addresses']
type CellOf = (link: ExportedLink, addresses: Addresses) => string | number | null

const timeOf = (at: number | null): string | null => (at === null ? null : isoTime(at))

const COLUMNS: Readonly<Record<string, CellOf>> = {
  code: ({ code }) => code,
  short_url: ({ code }, addresses) => addresses.short(code),
  url: ({ url }) => url,
  created_at: ({ createdAt }) => isoTime(createdAt),
  hits: ({ hitCount }) => hitCount,
  title: ({ properties }) => properties.title,
  tags: ({ properties }) => properties.tags.join(', '),
  note: ({ properties }) => properties.note,
  paused: ({ properties }) => String(properties.isPaused),
  starts_at: ({ properties }) => timeOf(properties.startsAt),
  expires_at: ({ properties }) => timeOf(properties.expiresAt),
  max_hits: ({ properties }) => properties.maxHits,
  expired_url: ({ properties }) => properties.expiredUrl,
  forward_query: ({ properties }) => String(properties.forwardQuery),
}
const HEAD = csvLine(Object.keys(COLUMNS))
const CELLS = Object.values(COLUMNS)

const linkLines = ({ addresses }: DashboardDeps, links: readonly ExportedLink[]): string =>
  links.map((link) => csvLine(CELLS.map((cellOf) => cellOf(link, addresses)))).join('')

/** A file with a few links. */
export const exportCsv = (deps: DashboardDeps, links: readonly ExportedLink[]): string =>
  HEAD + linkLines(deps, links)

/** Reads a chunk when the previous one has been sent, so that they do not accumulate. */
function csvOf(
  deps: DashboardDeps,
  chunks: AsyncGenerator<ExportedLink[], void, undefined>,
  hold: Hold,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const next = async () => {
    let isLast = true
    try {
      const chunk = await chunks.next()
      isLast = chunk.done === true
      return chunk
    } finally {
      // Also after a failed read, which ends the stream.
      if (isLast) hold[Symbol.dispose]()
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encoder.encode(HEAD)),
      async pull(controller) {
        const { done, value } = await next()
        if (done) return controller.close()
        controller.enqueue(encoder.encode(linkLines(deps, value)))
      },
      async cancel() {
        hold[Symbol.dispose]()
        await chunks.return()
      },
    },
    { highWaterMark: 1 },
  )
}
