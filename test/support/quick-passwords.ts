/**
 * The password thread of tests: real Argon2id hashes at the least cost, because tests of the
 * dashboard create hundreds of passwords at 55 ms of CPU each.
 */
import type { PasswordFunctions } from '../../src/accounts/passwords.ts'
import { functionService, serveThread } from '../../src/lib/thread.ts'

const LEAST = { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 } as const

const functions: PasswordFunctions = {
  hash: (password) => Bun.password.hashSync(password, LEAST),
  verify: ({ password, hash }) => Bun.password.verifySync(password, hash),
}

serveThread(() => functionService(functions))
