import { newPasscode } from '../accounts/passcodes.ts'
import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { isoTime } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import type { LinkDeps } from './deps.ts'
import type { ReservedView } from './schema.ts'

/** Claims a code without a destination. Throws `code_in_use` if any account holds it, then
 * `quota_exceeded`. */
export async function reserve(deps: LinkDeps, owner: Account, code: Code): Promise<ReservedView> {
  const passcode = newPasscode(deps.random)
  const link = await deps.links.reserve({
    code,
    accountId: owner.id,
    keyId: owner.keyId,
    passcodeHash: deps.hasher.hash('passcode', passcode),
    createdAt: deps.clock(),
    quota: deps.plans[owner.plan],
  })
  if (!link) throw new AppError('code_in_use', code)
  return {
    code: link.code,
    passcode,
    url: null,
    short_url: deps.addresses.short(link.code),
    reserved: true,
    created_at: isoTime(link.createdAt),
  }
}
