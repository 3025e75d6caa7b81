import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { toCode } from '../lib/code.ts'
import type { LinkDeps } from './deps.ts'
import type { LinkRow } from './row.ts'

/**
 * The account's own link behind a code in any letter case. Throws `code_not_found`, the same for a
 * malformed, an unknown and another account's code.
 */
export function getOwnLink(
  { reads }: Pick<LinkDeps, 'reads'>,
  owner: Account,
  text: string,
): LinkRow {
  const code = toCode(text)
  const link = code && reads.findByCode(code)
  if (link?.accountId !== owner.id) throw notOwn(text)
  return link
}

export const notOwn = (text: string): AppError => new AppError('code_not_found', text.toUpperCase())
