import { expect, test } from 'bun:test'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { temporaryFolder } from '../../test/support/folder.ts'
import { hashesEqual, readSecretKey, SecretHasher, secretFile } from './secrets.ts'

test('the hashing key is created once, readable by its owner only, and stays the same', () => {
  using folder = temporaryFolder()
  const key = readSecretKey(folder.path, { fresh: true })
  expect(key).toHaveLength(32)
  expect(readSecretKey(folder.path, { fresh: false })).toEqual(key)
  expect(statSync(secretFile(folder.path)).mode & 0o777).toBe(0o600)
})

test('a missing key is not replaced by a new one while hashes exist', () => {
  using folder = temporaryFolder()
  readSecretKey(folder.path, { fresh: true })
  rmSync(secretFile(folder.path))
  expect(() => readSecretKey(folder.path, { fresh: false })).toThrow(
    `${secretFile(folder.path)} is missing`,
  )
})

test.each(['', 'short', 'z'.repeat(64), `${'0'.repeat(63)}\n`])(
  'a damaged key %j is refused with words that name it',
  (text) => {
    using folder = temporaryFolder()
    writeFileSync(secretFile(folder.path), text)
    expect(() => readSecretKey(folder.path, { fresh: true })).toThrow(
      `${secretFile(folder.path)} is damaged`,
    )
  },
)

test('a hash depends on the key, the purpose and the secret', () => {
  const hasher = new SecretHasher(Buffer.alloc(32, 1))
  const hash = hasher.hash('passcode', 'ABC')
  expect(hash).toHaveLength(32)
  expect(hashesEqual(hash, hasher.hash('passcode', 'ABC'))).toBe(true)
  expect(hashesEqual(hash, hasher.hash('api-key', 'ABC'))).toBe(false)
  expect(hashesEqual(hash, hasher.hash('passcode', 'ABD'))).toBe(false)
  expect(hashesEqual(hash, new SecretHasher(Buffer.alloc(32, 2)).hash('passcode', 'ABC'))).toBe(
    false,
  )
  expect(hashesEqual(hash, hash.subarray(1))).toBe(false)
})
