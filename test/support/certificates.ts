import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const CERTIFIED_NAME = 'localhost'
/** Without it, every certificate is one of an authority, which browsers refuse. */
const CONFIGURATION = '[req]\ndistinguished_name = name\n[name]\n'
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
  const configuration = join(folder, 'openssl.cnf')
  writeFileSync(configuration, CONFIGURATION)
  const request = ['openssl', 'req', '-config', configuration, '-x509', ...KEY]
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync([...request, ...words])
    if (exitCode !== 0) throw new Error(`openssl: ${stderr}`)
  }
  const ofAuthority = ['-subj', '/CN=authority', '-addext', 'basicConstraints=critical,CA:TRUE']
  openssl('-keyout', authorityKey, '-out', authority, ...ofAuthority)
  const signed = [
    '-CA',
    authority,
    '-CAkey',
    authorityKey,
    '-addext',
    `subjectAltName=${hosts.join()}`,
    '-addext',
    'authorityKeyIdentifier=keyid',
  ]
  openssl('-keyout', key, '-out', certificate, '-subj', `/CN=${CERTIFIED_NAME}`, ...signed)
  return files
}
