import { isKnownHash, LINK_PASSWORD_MAX } from '../links/link-passwords.ts'

/**
 * What an import does with links that have a password. `keep`, the default: they keep it, and are
 * paused where that is not possible. Or they are paused, left out, or open to all.
 */
export type PasswordOption = 'keep' | 'pause' | 'skip' | 'open'

/** The password of a link in the form in which an import keeps it. */
export type KeptPassword = { password: string } | { password_hash: string }

/** A column of another service may only say that there is a password, or hide it. */
const WORD = /^(?:true|false|yes|no|on|off|null|[ytnf01])$/i
const MASKED = /[*•●]{3}/
/** The forms of hashes, by their prefix or as hexadecimal digits or base64. */
const NAMED_HASH = /^(?:\$[\w-]+\$|\{[\w-]+\}|pbkdf2|argon2|scrypt|bcrypt|sha-?\d|md5)/i
const ENCODED_HASH = /^(?:[\da-f]{32}|[\da-f]{40,128}|[\w+/-]{40,}={0,2})$/i
const NOT_PLAIN = [WORD, MASKED, NAMED_HASH, ENCODED_HASH]

/**
 * Undefined if no import can keep it. A text that may be a hash is not taken for a password: nobody
 * would know it, and the link would be closed for ever.
 */
export function keptPassword(value: unknown): KeptPassword | undefined {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || text.length > LINK_PASSWORD_MAX) return undefined
  if (isKnownHash(text)) return { password_hash: text }
  const bare = text.trim()
  const isPlain = bare !== '' && !NOT_PLAIN.some((form) => form.test(bare))
  return isPlain ? { password: text } : undefined
}

interface WithPassword {
  hasPassword: boolean
  password: KeptPassword | undefined
}
interface Options {
  passwords?: PasswordOption | undefined
}

/** Undefined if the link has no password, or if it cannot or must not be kept. */
export const keptPasswordOf = (
  { hasPassword, password }: WithPassword,
  { passwords = 'keep' }: Options,
): KeptPassword | undefined => (hasPassword && passwords === 'keep' ? password : undefined)

export const isPausedFor = (link: WithPassword, options: Options): boolean =>
  link.hasPassword && options.passwords !== 'open' && !keptPasswordOf(link, options)
