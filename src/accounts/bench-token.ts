import type { Clock } from '../lib/clock.ts'
import { hashesEqual, type SecretHasher } from './secrets.ts'
import type { AccountId } from './store.ts'

/**
 * A bench may load a service on a public address only with a token that was printed on its host.
 * The token is `<expiry>.<proof>.<answer>`. The bench sends the first two parts with an API key of
 * the account, and the service returns the third, so that each knows that the other has the token
 * or the key of the data folder. A service that is not Hopcode, or another one, cannot answer.
 */
const VALID_SECONDS = 3600

interface BenchTokenDeps {
  hasher: SecretHasher
  clock: Clock
}

type Part = 'proof' | 'answer'

const hashOf = (
  { hasher }: BenchTokenDeps,
  part: Part,
  { accountId, expiry }: { accountId: AccountId; expiry: string },
): Buffer => hasher.hash('bench-token', `${part} ${accountId} ${expiry}`)

export function issueBenchToken(deps: BenchTokenDeps, accountId: AccountId): string {
  const expiry = String(Math.floor(deps.clock() / 1000) + VALID_SECONDS)
  const part = (name: Part) => hashOf(deps, name, { accountId, expiry }).toString('base64url')
  return `${expiry}.${part('proof')}.${part('answer')}`
}

/** The third part for the first two; undefined if they are wrong, expired or of another account. */
export function answerBenchToken(
  deps: BenchTokenDeps,
  accountId: AccountId,
  text: string,
): string | undefined {
  const [, expiry = '0', proof = ''] = /^(\d{10})\.([\w-]{43})$/.exec(text) ?? []
  const about = { accountId, expiry }
  const isRight = hashesEqual(hashOf(deps, 'proof', about), Buffer.from(proof, 'base64url'))
  if (!isRight || Number(expiry) * 1000 <= deps.clock()) return undefined
  return hashOf(deps, 'answer', about).toString('base64url')
}
