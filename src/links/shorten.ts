import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import { create } from './create.ts'
import type { LinkDeps } from './deps.ts'
import type { CreatedView, ReusedView } from './schema.ts'

/** Gives a URL a code, or finds the one that the account has for it. Throws `url_blocked`, then
 * `quota_exceeded`.
 */
export async function shorten(
  deps: LinkDeps,
  owner: Account,
  url: string,
): Promise<CreatedView | ReusedView> {
  if (deps.blocklist.isBlocked(url)) throw new AppError('url_blocked')
  const [view] = await create(deps, owner, [url])
  assert(view, 'one URL makes one answer')
  if (view instanceof AppError) throw view
  return view
}
