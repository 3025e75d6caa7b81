import { hashesEqual } from '../accounts/secrets.ts'
import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { LinkDeps } from './deps.ts'
import type { SecretLinkRow } from './store.ts'

const NO_HASH = new Uint8Array(32)
/** Looked for in place of what cannot be a code. */
const ANY_CODE = 'AAAAAA' as Code

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
  // For an unknown code it is another link, whose hash is compared in vain: scripts/timing-403.ts
  // measures that nobody can tell.
  const link = deps.reads.findNearest(known ?? ANY_CODE)
  // mutate hash-known-codes-only: s/= (.*)/= link?.code === known ? $1 : NO_HASH/
  const presented = deps.hasher.hash('passcode', passcode)
  const matches = hashesEqual(presented, link?.passcodeHash ?? NO_HASH)
  const isMeant = differenceOf(link?.code ?? '', known ?? '') === 0
  const isOwn = link?.accountId === owner.id
  if (!link || !matches || !isMeant || !isOwn || !known) throw refused(code)
  return link
}

export const refused = (code: string): AppError =>
  new AppError('invalid_passcode', code.toUpperCase())

/** 0 for equal texts, found in a time that only the length of `asked` decides. */
function differenceOf(found: string, asked: string): number {
  let difference = found.length ^ asked.length
  for (let i = 0; i < asked.length; i++) difference |= found.charCodeAt(i) ^ asked.charCodeAt(i)
  return difference
}
