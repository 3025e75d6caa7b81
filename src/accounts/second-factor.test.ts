import { expect, test } from 'bun:test'
import { secureRandom } from '../lib/random.ts'
import { describeSecret, findStep, newTotpSecret, openSecret, sealSecret } from './second-factor.ts'
import { SecretHasher } from './secrets.ts'

const SECOND = 1000
const hasher = new SecretHasher(Buffer.alloc(32, 1))
const deps = { hasher, random: secureRandom }

/** RFC 6238, appendix B: the last six of its eight digits. */
const SECRET = Buffer.from('12345678901234567890')
const VECTORS: [number, string][] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
]

test.each(VECTORS)('at second %p the code is %p, as RFC 6238 has it', (seconds, code) => {
  expect(findStep(SECRET, code, seconds * SECOND)).toBe(Math.floor(seconds / 30))
})

test('a code is accepted one step early and one step late, and not two', () => {
  const [seconds, code] = VECTORS[3] ?? [0, '']
  const step = Math.floor(seconds / 30)
  const at = (steps: number) => findStep(SECRET, code, (step + steps) * 30 * SECOND)
  expect([-2, -1, 0, 1, 2].map(at)).toEqual([undefined, step, step, step, undefined])
})

test.each(['', '28708', '2870822', '28708a', ' 287082', '٢٨٧٠٨٢', '0x1234', '-28708'])(
  '%p is no code',
  (code) => expect(findStep(SECRET, code, 59 * SECOND)).toBeUndefined(),
)

test('a stored secret is opened with its own key and for its own account alone', () => {
  const secret = newTotpSecret(secureRandom)
  expect(secret).toHaveLength(20)
  const sealed = sealSecret(deps, 7, secret)
  expect(sealed.includes(Buffer.from(secret))).toBe(false)
  expect(openSecret(hasher, 7, sealed)).toEqual(Buffer.from(secret))
  expect(sealSecret(deps, 7, secret)).not.toEqual(sealed)
  const damaged = Buffer.from(sealed)
  damaged[20] = (damaged[20] ?? 0) ^ 1
  const others = new SecretHasher(Buffer.alloc(32, 2))
  expect(() => openSecret(hasher, 8, sealed)).toThrow()
  expect(() => openSecret(others, 7, sealed)).toThrow()
  expect(() => openSecret(hasher, 7, damaged)).toThrow()
  expect(() => openSecret(hasher, 7, sealed.subarray(0, 10))).toThrow()
})

test('the otpauth URL names the account and the service', () => {
  const { url, key } = describeSecret(SECRET, {
    issuer: 'Hopcode (go.example.com)',
    email: 'ann+1@example.com',
  })
  const parsed = new URL(url)
  expect(key).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  expect(decodeURIComponent(parsed.pathname)).toEndWith(
    'Hopcode (go.example.com):ann+1@example.com',
  )
  expect(Object.fromEntries(parsed.searchParams)).toEqual({
    issuer: 'Hopcode (go.example.com)',
    secret: key,
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  })
})
