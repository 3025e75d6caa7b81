import { cpSync, readFileSync } from 'node:fs'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Answer, type TestApp, testApp, toAnswer } from './app.ts'
import { createCertificate } from './certificates.ts'
import { temporaryFolder } from './folder.ts'

/** A service with https, and certificates of an authority of the tests. */

export const HOSTS = ['DNS:go.example', 'DNS:go2.example', 'DNS:localhost', 'IP:127.0.0.1']

export interface OwnCertificate extends Disposable {
  folder: string
  /** Where the service reads it; `replace` puts another one there. */
  files: { certificate: string; key: string }
  /** The authority that clients trust. */
  authority: string
  replace(parts?: readonly ('certificate' | 'key')[]): void
}

/** A certificate in files. */
export function ownCertificate(): OwnCertificate {
  const folder = temporaryFolder()
  const { certificate, key, authority } = createCertificate(folder.path, HOSTS)
  let trusted = readFileSync(authority, 'utf8')
  return {
    folder: folder.path,
    files: { certificate, key },
    get authority() {
      return trusted
    },
    replace(parts = ['certificate', 'key']) {
      using other = temporaryFolder()
      const next = createCertificate(other.path, HOSTS)
      trusted += readFileSync(next.authority, 'utf8')
      if (parts.includes('certificate')) cpSync(next.certificate, certificate)
      if (parts.includes('key')) cpSync(next.key, key)
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

type Options = NonNullable<Parameters<typeof testApp>[0]>

/** A service at https://go.example with that certificate, without trusted proxies. */
export const httpsApp = (own: OwnCertificate, options: Options = {}): Promise<TestApp> =>
  testApp({
    ...options,
    env: {
      BASE_URL: 'https://go.example',
      HTTPS_PORT: '0',
      TLS_CERT_FILE: own.files.certificate,
      TLS_KEY_FILE: own.files.key,
      ...options.env,
    },
  })

interface TlsCall extends RequestInit {
  host?: string
}

/** A request over https whose certificate is verified. */
export async function callTls(
  app: TestApp,
  own: Pick<OwnCertificate, 'authority'>,
  path: string,
  { host = 'go.example', ...init }: TlsCall = {},
): Promise<Answer> {
  const headers = { host, 'x-forwarded-for': '192.0.2.1', ...init.headers }
  const tls = { ca: own.authority }
  const response = await fetch(app.tlsUrl + path, { redirect: 'manual', ...init, headers, tls })
  return toAnswer(response)
}

/** The serial number of the certificate that new connections get. */
export async function servedSerial(app: TestApp, own: OwnCertificate): Promise<string> {
  using socket = await openTls(app.tlsUrl, own.authority)
  return socket.socket.getPeerCertificate().serialNumber
}

/** A connection with TLS, once its handshake is complete. */
export function openTls(
  url: string,
  ca: string,
  options: { servername?: string } = {},
): Promise<Disposable & { socket: TLSSocket }> {
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const where = { host, port: Number(port), allowHalfOpen: true }
    const socket = connectTls({ ...where, ca, servername: 'go.example', ...options }, () =>
      resolve({ socket, [Symbol.dispose]: () => void socket.destroy() }),
    )
    socket.once('error', reject)
  })
}
