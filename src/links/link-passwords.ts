import { z } from 'zod'
import { normalizePassword, type PasswordHashing } from '../accounts/passwords.ts'
import type { AccountId } from '../accounts/store.ts'
import type { PropertiesChange } from './property-table.ts'

/** Passwords that visitors of a link enter before they are redirected. */

export const LINK_PASSWORD_MIN = 6
export const LINK_PASSWORD_MAX = 128

const RANGE = `${LINK_PASSWORD_MIN} to ${LINK_PASSWORD_MAX} characters`
const BAD_PASSWORD = `Invalid password: must have ${RANGE}`

/** Characters are code points after normalization. Null removes the password. */
export const LinkPassword = z
  .string(BAD_PASSWORD)
  .refine((text) => {
    const { length } = [...normalizePassword(text)]
    return length >= LINK_PASSWORD_MIN && length <= LINK_PASSWORD_MAX
  }, BAD_PASSWORD)
  .meta({
    description:
      'Visitors enter it before they are redirected. It is stored as a hash, and no response ' +
      'contains it: `protected` says whether there is one. Null removes it.',
    minLength: LINK_PASSWORD_MIN,
    maxLength: LINK_PASSWORD_MAX,
    writeOnly: true,
  })

type Hashed<Change> = Omit<Change, 'password'> & { password?: string | null | undefined }

/** The change with the hash of its password. Throws `busy`. */
export async function withHash<Change extends Pick<PropertiesChange, 'password'>>(
  passwords: PasswordHashing,
  accountId: AccountId,
  change: Change,
): Promise<Hashed<Change>> {
  const { password } = change
  if (typeof password !== 'string') return change
  const hash = await passwords.hash(password, { queue: 'linkOwner', key: String(accountId) })
  return { ...change, password: hash }
}

/** The format of Kutt. Verified until the first success, which replaces it. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
/** A check takes a quarter of a second. Each further step doubles it. */
const BCRYPT_COST_MAX = 12

export const isBcrypt = (hash: string): boolean => BCRYPT.test(hash)

/** Whether an import may keep the hash. */
export function isKnownHash(hash: string): boolean {
  const cost = Number(BCRYPT.exec(hash)?.[1] ?? Number.NaN)
  return cost >= 4 && cost <= BCRYPT_COST_MAX
}
