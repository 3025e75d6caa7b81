import { join } from 'node:path'

export const CERTIFIED_NAME = 'localhost'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** An authority, and a certificate that it has signed. `hosts`: as OpenSSL names them. */
export function createCertificate(folder: string, hosts = [`DNS:${CERTIFIED_NAME}`]) {
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
    `subjectAltName=${hosts.join()}`,
  ]
  openssl('-keyout', key, '-out', certificate, '-subj', `/CN=${CERTIFIED_NAME}`, ...signed)
  return files
}
