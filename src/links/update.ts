import type { Account } from '../accounts/store.ts'
import { pointAt } from './change.ts'
import type { LinkDeps } from './deps.ts'
import { permit, refused } from './permit.ts'
import type { UpdatedView } from './schema.ts'

interface Change {
  code: string
  passcode: string
  url: string
}

/**
 * Points a code at another URL; doing it again gives the same. Throws `invalid_passcode`, then
 * `url_blocked`, then `quota_exceeded`.
 */
export async function update(
  deps: LinkDeps,
  owner: Account,
  { code, passcode, url }: Change,
): Promise<UpdatedView> {
  const { id } = permit(deps, owner, code, passcode)
  const link = await pointAt(deps, owner, { id, url })
  // Deleted between the look and the write.
  if (!link) throw refused(code)
  return { code: link.code, url, short_url: deps.addresses.short(link.code), updated: true }
}
