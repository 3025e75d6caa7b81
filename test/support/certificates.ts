import { join } from 'node:path'

export const CERTIFIED_NAME = 'localhost'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** An authority, and a certificate for `CERTIFIED_NAME` that it has signed. */
export function createCertificate(folder: string) {
  const files = {
    authority: join(folder, 'authority.pem'),
    authorityKey: join(folder, 'authority.key'),
    certificate: join(folder, 'server.pem'),
    key: join(folder, 'server.key'),
  }
  const { authority, authorityKey, certificate, key } = files
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', 'req', '-x509', ...KEY, ...words])
    if (exitCode !== 0) throw new Error(`openssl: ${stderr}`)
  }
  openssl('-keyout', authorityKey, '-out', authority, '-subj', '/CN=authority')
  const signed = [
    '-CA',
    authority,
    '-CAkey',
    authorityKey,
    '-addext',
    `subjectAltName=DNS:${CERTIFIED_NAME}`,
  ]
  openssl('-keyout', key, '-out', certificate, '-subj', `/CN=${CERTIFIED_NAME}`, ...signed)
  return files
}
