import { expect } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCertificate } from '../../test/support/certificates.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { testWith } from '../../test/support/tools.ts'
import { certificateRequest, renewalId } from './der.ts'
import { newKeys } from './store.ts'

const openssl = (...words: string[]) => {
  const { stdout, stderr, exitCode } = Bun.spawnSync(['openssl', ...words])
  if (exitCode !== 0) throw new Error(String(stderr))
  return String(stdout)
}

testWith('openssl').each([1, 3, 51])('openssl reads a request for %p hosts', (count) => {
  using folder = temporaryFolder()
  const names = Array.from({ length: count }, (_, i) => `name-${i}.of-a-long-host.example`)
  const file = join(folder.path, 'request.der')
  writeFileSync(file, certificateRequest(names, newKeys()))
  const text = openssl('req', '-in', file, '-inform', 'der', '-noout', '-text', '-verify')
  expect([...text.matchAll(/DNS:([\w.-]+)/g)].map(([, name]) => name)).toEqual(names)
  expect(text).toContain('Subject: \n'.trim())
  expect(text).toContain('prime256v1')
})

testWith('openssl')('a certificate is named by the key of its authority and its number', () => {
  using folder = temporaryFolder()
  const { certificate } = createCertificate(folder.path)
  const text = openssl('x509', '-in', certificate, '-noout', '-text', '-serial')
  const key = /Authority Key Identifier:\s+(?:keyid:)?([\dA-F:]+)/.exec(text)?.[1] ?? ''
  const serial = /serial=([\dA-F]+)/.exec(text)?.[1] ?? ''
  const [keyPart = '', serialPart = ''] =
    renewalId(new X509Certificate(readFileSync(certificate)))?.split('.') ?? []
  const hex = (part: string) => Buffer.from(part, 'base64url').toString('hex').toUpperCase()
  expect(hex(keyPart)).toBe(key.replaceAll(':', ''))
  // DER has a zero before a first bit that is set.
  const isHigh = Number.parseInt(serial.slice(0, 2), 16) >= 0x80
  expect(hex(serialPart)).toBe(isHigh ? `00${serial}` : serial)
})
