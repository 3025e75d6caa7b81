import { hashesEqual } from '../accounts/secrets.ts'
import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { toCode } from './code.ts'
import type { LinkDeps } from './deps.ts'
import type { SecretLinkRow } from './store.ts'

const NO_HASH = new Uint8Array(32)

/**
 * The link that an account may change with a passcode. An unknown code, a wrong passcode and
 * another account's code are one refusal: the same work is done for each, so that its time tells no
 * more.
 */
export function permit(
  deps: LinkDeps,
  owner: Account,
  code: string,
  passcode: string,
): SecretLinkRow {
  const known = toCode(code)
  const link = known && deps.reads.findByCode(known)
  const presented = deps.hasher.hash('passcode', passcode)
  const matches = hashesEqual(presented, link?.passcodeHash ?? NO_HASH)
  if (!link || !matches || link.accountId !== owner.id) throw refused(code)
  return link
}

export const refused = (code: string): AppError =>
  new AppError('invalid_passcode', code.toUpperCase())
