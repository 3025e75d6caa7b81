import { AppError } from '../errors.ts'
import { isoTime } from '../lib/clock.ts'
import { toCode } from '../lib/code.ts'
import type { LinkDeps } from './deps.ts'
import type { LinkRow } from './row.ts'
import type { LookupView } from './schema.ts'

/** The link behind a code in any letter case. Throws `code_not_found`, for a malformed code too. */
export function getLink({ reads }: Pick<LinkDeps, 'reads'>, text: string): LinkRow {
  const code = toCode(text)
  const link = code && reads.findByCode(code)
  if (!link) throw new AppError('code_not_found', text.toUpperCase())
  return link
}

/** Tells where a code leads without following it. */
export function lookup(deps: LinkDeps, code: string): LookupView {
  const link = getLink(deps, code)
  return lookupView(link, deps.hits.of([link.id]).get(link.id) ?? 0)
}

export function lookupView(link: LinkRow, hitCount: number): LookupView {
  return {
    code: link.code,
    url: link.url,
    created_at: isoTime(link.createdAt),
    hit_count: hitCount,
  }
}
