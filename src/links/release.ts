import type { Account } from '../accounts/store.ts'
import type { LinkDeps } from './deps.ts'
import { getOwnLink, notOwn } from './own.ts'
import { authorOf } from './row.ts'

/**
 * Ends an account's own code at once, without its passcode: from the next request on it is unknown,
 * and free for anyone. Throws `code_not_found`.
 */
export async function release(deps: LinkDeps, owner: Account, code: string): Promise<void> {
  const link = getOwnLink(deps, owner, code)
  const author = authorOf(owner, deps.clock())
  if (!(await deps.links.delete(link.id, link.code, author))) throw notOwn(code)
}
