import type { Account } from '../accounts/store.ts'
import { AppError, REFUSALS } from '../errors.ts'
import { batchTurns } from '../lib/turns.ts'
import { create, LINKS_AT_ONCE } from './create.ts'
import type { LinkDeps } from './deps.ts'
import type { BulkItemView, BulkView } from './schema.ts'
import { Url } from './url.ts'

/**
 * An account's batches are written no faster, so that creates of others meet one only now and then.
 * Typical URLs arrive more slowly than this.
 */
export const BULK_BYTES_PER_SECOND = 20_000_000

type Verdict = { url: string } | { refusal: AppError }

/**
 * Shortens many URLs in one transaction. A bad one fails alone; when all are bad, nothing is stored
 * and the whole request is refused: 400 with the first invalid URL's message, or else 422.
 */
export async function bulk(
  deps: LinkDeps,
  owner: Account,
  urls: readonly unknown[],
): Promise<BulkView> {
  const verdicts = await batchTurns.map(urls, LINKS_AT_ONCE, (url) => judgeUrl(deps, url))
  const good = verdicts.flatMap((verdict) => ('url' in verdict ? [verdict.url] : []))
  if (good.length === 0) throw worst(verdicts)
  const bytes = good.reduce((sum, url) => sum + Buffer.byteLength(url), 0)
  await deps.pace.wait(owner.id, bytes)
  const created = await create(deps, owner, good)
  const full = created.find((view) => view instanceof AppError)
  if (full && created.every((view) => view instanceof AppError))
    throw worst([...verdicts, { refusal: full }])
  let next = 0
  const results = verdicts.map((verdict, i): BulkItemView => {
    if ('refusal' in verdict) return failed(urls[i], verdict.refusal)
    const view = created[next++]
    if (!view) throw new Error('every good URL has an answer')
    if (view instanceof AppError) return failed(urls[i], view)
    return { ok: true, ...view }
  })
  return { count: results.length, results }
}

/** Whether a URL may be shortened, or the refusal that shorten would give. */
export function judgeUrl({ blocklist }: Pick<LinkDeps, 'blocklist'>, url: unknown): Verdict {
  const parsed = Url.safeParse(url)
  if (!parsed.success) {
    return { refusal: new AppError('invalid_value', parsed.error.issues[0]?.message) }
  }
  if (blocklist.isBlocked(parsed.data)) return { refusal: new AppError('url_blocked') }
  return { url: parsed.data }
}

function failed(url: unknown, { message }: AppError): BulkItemView {
  return { ok: false, url: typeof url === 'string' ? url : null, error: message }
}

function worst(verdicts: readonly Verdict[]): AppError {
  const refusals = verdicts.flatMap((verdict) => ('refusal' in verdict ? [verdict.refusal] : []))
  const invalid = refusals.find(({ status }) => status === REFUSALS.invalid_value.status)
  return invalid ?? refusals.at(-1) ?? new AppError('url_blocked')
}
