import { Elysia } from 'elysia'
import type { Hold } from '../../http/byte-budget.ts'
import { isoTime } from '../../lib/clock.ts'
import { type ExportedLink, exportLinks } from '../../links/export.ts'
import { fileAnswer } from '../answers.ts'
import { signedIn } from '../auth/guard.ts'
import { CSV_TYPE, csvLine } from '../csv.ts'
import type { DashboardDeps } from '../deps.ts'

/** Every link of the account as one file, made as it is sent. */
export const exportPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.export', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/export.csv', ({ account }) => {
      const day = isoTime(deps.clock()).slice(0, 10)
      const hold = deps.unsent.hold(account.id)
      hold.take(EXPORT_BYTES)
      return fileAnswer(csvOf(deps, exportLinks(deps, account.id), hold), {
        ...{ name: `hopcode-links-${day}.csv`, type: CSV_TYPE },
      })
    })

/** What an export holds in memory while its client does not read: two pieces, about. */
const EXPORT_BYTES = 1024 * 1024

const COLUMNS = ['code', 'short_url', 'url', 'created_at', 'hits']

/** The next piece is read when the last one is on its way, so that none piles up. */
function csvOf(
  { addresses }: DashboardDeps,
  pieces: AsyncGenerator<ExportedLink[], void, undefined>,
  hold: Hold,
): ReadableStream<Uint8Array> {
  const line = ({ code, url, createdAt, hitCount }: ExportedLink) =>
    csvLine([code, addresses.short(code), url, isoTime(createdAt), hitCount])
  const encoder = new TextEncoder()
  const next = async () => {
    let isLast = true
    try {
      const piece = await pieces.next()
      isLast = piece.done === true
      return piece
    } finally {
      // A failing read ends the stream too.
      if (isLast) hold[Symbol.dispose]()
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encoder.encode(csvLine(COLUMNS))),
      async pull(controller) {
        const { done, value } = await next()
        if (done) return controller.close()
        controller.enqueue(encoder.encode(value.map(line).join('')))
      },
      async cancel() {
        hold[Symbol.dispose]()
        await pieces.return()
      },
    },
    { highWaterMark: 1 },
  )
}
