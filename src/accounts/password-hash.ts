/**
 * Argon2id as OWASP's Password Storage Cheat Sheet recommends it at least: 19 MiB, two passes, one
 * lane. Its stronger rows cost the memory and the time of a sign-in threefold, on a service whose
 * redirects share two cores with it.
 */
const ARGON2ID = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

/** What the password thread does: some 25 ms of a processor a call. */
export const passwordFunctions = {
  hash: (password: string): string => Bun.password.hashSync(password, ARGON2ID),
  verify: ({ password, hash }: { password: string; hash: string }): boolean =>
    Bun.password.verifySync(password, hash),
}

export type PasswordFunctions = typeof passwordFunctions
