import type { Account } from '../accounts/store.ts'
import type { LinkDeps } from './deps.ts'
import { permit, refused } from './permit.ts'
import { authorOf } from './row.ts'
import type { DeletedView } from './schema.ts'

/**
 * Ends a code at once: from the next request on it is unknown, and free for anyone. Throws
 * `invalid_passcode`.
 */
export async function deleteLink(
  deps: LinkDeps,
  owner: Account,
  { code, passcode }: { code: string; passcode: string },
): Promise<DeletedView> {
  const link = permit(deps, owner, code, passcode)
  // Another request may have deleted it between the look and the write.
  const author = authorOf(owner, deps.clock())
  if (!(await deps.links.delete(link.id, link.code, author))) throw refused(code)
  return { code: link.code, deleted: true }
}
