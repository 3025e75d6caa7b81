import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Fetch } from '../../src/certificates/acme.ts'
import { eventually, START, type TestApp, testApp } from './app.ts'
import { createCertificate } from './certificates.ts'
import { temporaryFolder } from './folder.ts'
import { freePort } from './ports.ts'
import { findPebble } from './tools.ts'

/** Let's Encrypt's test authority, with a DNS server that knows every name. */

interface PebbleOptions {
  /** Where it asks for the answers to challenges. */
  httpPort: number
  env?: Record<string, string>
  /** Of an earlier one, whose place it takes. */
  port?: number
  folder?: string
}

export class Pebble implements AsyncDisposable {
  readonly directory: string
  /** File with the authority of its own address. */
  readonly authorityFile: string
  readonly httpPort: number
  readonly port: number
  readonly #management: string
  readonly #dnsManagement: string
  readonly #authority: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  readonly #children: Bun.Subprocess[]
  readonly #folder: Disposable & { path: string }
  readonly #log: string[] = []

  private constructor(
    options: PebbleOptions & { folder: Disposable & { path: string } },
    authorityFile: string,
  ) {
    const { httpPort, env = {}, folder } = options
    const programs = findPebble() ?? ''
    const [management, dns, dnsManagement] = [freePort(), freePort(), freePort()]
    this.port = options.port ?? freePort()
    this.httpPort = httpPort
    this.#folder = folder
    this.authorityFile = authorityFile
    this.directory = `https://localhost:${this.port}/dir`
    this.#management = `https://localhost:${management}`
    this.#dnsManagement = `http://127.0.0.1:${dnsManagement}`
    const config = join(folder.path, 'pebble.json')
    writeFileSync(
      config,
      JSON.stringify({
        pebble: {
          listenAddress: `127.0.0.1:${this.port}`,
          managementListenAddress: `127.0.0.1:${management}`,
          certificate: join(folder.path, 'server.pem'),
          privateKey: join(folder.path, 'server.key'),
          httpPort,
          tlsPort: freePort(),
          ocspResponderURL: '',
          externalAccountBindingRequired: false,
          retryAfter: { authz: 1, order: 1 },
          keyAlgorithm: 'ecdsa',
          profiles: { default: { description: 'for tests', validityPeriod: 7_776_000 } },
        },
      }),
    )
    const dnsServer = `-dnsserver 127.0.0.1:${dns} -management 127.0.0.1:${dnsManagement}
      -http01= -https01= -tlsalpn01= -doh= -defaultIPv4 127.0.0.1 -defaultIPv6=`
    const authority = `-strict -config ${config} -dnsserver 127.0.0.1:${dns}`
    const settings = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20', ...env }
    this.#authority = Bun.spawn([join(programs, 'pebble'), ...authority.split(' ')], {
      env: settings,
      stdout: 'pipe',
      stderr: 'inherit',
    })
    this.#children = [
      Bun.spawn([join(programs, 'pebble-challtestsrv'), ...dnsServer.split(/\s+/)], {
        stdout: 'ignore',
        stderr: 'ignore',
      }),
      this.#authority,
    ]
    void this.#read()
  }

  static async start(options: PebbleOptions): Promise<Pebble> {
    const folder = temporaryFolder()
    const { authority } = createCertificate(folder.path)
    const pebble = new Pebble({ ...options, folder } as never, authority)
    const isUp = (answer: Promise<unknown>) =>
      answer.then(
        () => true,
        () => false,
      )
    await eventually('Pebble answers', () => isUp(pebble.fetch(pebble.directory, {})))
    await eventually('its name server answers', () => isUp(fetch(pebble.#dnsManagement)))
    return pebble
  }

  /** A request that trusts its address. */
  fetch: Fetch = (url, init) => {
    const ca = readFileSync(this.authorityFile, 'utf8')
    return fetch(url, { ...init, tls: { ca } } as RequestInit)
  }

  /** The authority of the certificates that it issues. */
  async root(): Promise<string> {
    const text = async (path: string) => (await this.fetch(this.#management + path, {})).text()
    return `${await text('/roots/0')}\n${await text('/intermediates/0')}`
  }

  /** Has a name lead to an address of this machine. */
  async pointTo(host: string, address: string): Promise<void> {
    const body = JSON.stringify({ host: `${host}.`, addresses: [address] })
    await fetch(`${this.#dnsManagement}/clear-a`, { method: 'POST', body })
    await fetch(`${this.#dnsManagement}/add-a`, { method: 'POST', body })
  }

  /** Orders that it was asked for, repetitions because of a nonce not counted. */
  get orders(): number {
    return this.#log.filter((line) => line.includes('Added order')).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await Promise.all(this.#children.map(({ exited }) => exited))
    this.#folder[Symbol.dispose]()
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of this.#authority.stdout) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      this.#log.push(...lines)
    }
  }
}

type Options = NonNullable<Parameters<typeof testApp>[0]>

/** Settings of a service that gets its certificate from there. */
export const acmeSettings = ({ directory, httpPort }: Pebble): Record<string, string> => ({
  ACME_EMAIL: 'me@example.org',
  ACME_DIRECTORY: directory,
  BASE_URL: 'https://go.example',
  PORT: String(httpPort),
  HTTPS_PORT: '0',
})

/**
 * A service with a certificate from there. The clock of the authority is that of this machine, and
 * goes ahead with that of the test, unless `hasOwnClock`.
 */
export async function acmeApp(
  pebble: Pebble,
  { hasOwnClock = false, ...options }: Options & { hasOwnClock?: boolean } = {},
): Promise<TestApp> {
  const { fetch: ask = pebble.fetch } = options
  let app: TestApp | undefined
  const fetch: Fetch = async (url, init) => {
    const response = await ask(url, init)
    if (hasOwnClock || !app) return response
    const headers = new Headers(response.headers)
    const date = Date.parse(headers.get('date') ?? '') + app.now() - START
    if (!Number.isNaN(date)) headers.set('date', new Date(date).toUTCString())
    const body = init.method === 'HEAD' ? null : await response.arrayBuffer()
    return new Response(body, { status: response.status, headers })
  }
  app = await testApp({ ...options, fetch, env: { ...acmeSettings(pebble), ...options.env } })
  return app
}

export const certificatesOf = (app: TestApp) => {
  const { certificates } = app.administration
  if (!certificates) throw new Error('the service has no https')
  return certificates
}

/** Resolves when all that is due is done. */
export async function untilIdle(app: TestApp): Promise<void> {
  for (let i = 0; i < 3; i++) await certificatesOf(app).check()
}

/** Time that passes between two looks of a test: orders wait for each other and for more names. */
const STEP_MS = 5000

/** `eventually`, while the clock of the test goes on. */
export const inTime = (app: TestApp, what: string, isSo: () => boolean): Promise<void> =>
  eventually(what, () => {
    app.advance(STEP_MS)
    return isSo()
  })

/** Resolves when the certificate has these names. */
export const untilCertified = (app: TestApp, ...names: string[]): Promise<void> =>
  inTime(app, `the certificate has ${names}`, () => {
    const { names: all } = certificatesOf(app).status()
    const active = all.filter(({ isActive }) => isActive).map(({ name }) => name)
    return active.toSorted().join() === names.toSorted().join()
  })
