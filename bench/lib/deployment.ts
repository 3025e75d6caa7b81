import { readFileSync } from 'node:fs'
import { Connection } from './connection.ts'
import type { Remote } from './load.ts'
import { ownAddresses } from './own-address.ts'
import { median } from './rounds.ts'

const ROUND_TRIPS = 5
const RETRIES_MAX = 5

/** A running service, for `--url`. */
export interface DeploymentOptions {
  url: string
  /** An API key of the account that gets the links. */
  key: string
  /** A name of `ADAPTERS`. */
  service: string
  links: number
  /** What `hopcode bench-token` has printed, for a public address. */
  token?: string
  /** A file with the certificate of a private authority. */
  ca?: string
}

/** A request of the API of a deployment. */
export interface ApiCall {
  method?: string
  path: string
  headers?: Record<string, string>
  /** An object is sent as JSON. */
  body?: object | string
}

export interface ApiAnswer {
  status: number
  headers: Headers
  text: string
}

/** A running service with its proxy and TLS, reached at an address that has been checked. */
export class Deployment {
  readonly remote: Remote
  readonly port: number
  /** Milliseconds; `tls` is NaN without TLS. */
  roundTrips = { tcp: Number.NaN, tls: Number.NaN }
  readonly #origin: string

  private constructor(url: URL, address: string, ca: string | undefined) {
    const isSecure = url.protocol === 'https:'
    this.port = Number(url.port) || (isSecure ? 443 : 80)
    const tls = { serverName: url.hostname, ...(ca !== undefined && { ca }) }
    this.remote = { address, host: url.host, ...(isSecure && { tls }) }
    const shown = address.includes(':') ? `[${address}]` : address
    this.#origin = `${url.protocol}//${shown}:${this.port}`
  }

  /**
   * Throws Error if the host is not one's own, cannot be reached, or has a certificate that is not
   * trusted.
   */
  static async open({ url: text, token, key, ca: caFile }: DeploymentOptions): Promise<Deployment> {
    const url = new URL(text)
    const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8')
    const { addresses } = await ownAddresses(url, token !== undefined)
    let failure: unknown = new Error(`${url.hostname} has no address`)
    for (const address of addresses) {
      const deployment = new Deployment(url, address, ca)
      try {
        deployment.roundTrips = await deployment.#measureRoundTrips()
      } catch (error) {
        failure = error
        continue
      }
      if (token !== undefined) await deployment.#proveToken(key, token)
      return deployment
    }
    throw new Error(`${url.host} cannot be reached: ${(failure as Error).message}`, {
      cause: failure,
    })
  }

  /** Repeats a request that is answered with 429, after the seconds that the service names. */
  async call({ method = 'GET', path, headers = {}, body }: ApiCall): Promise<ApiAnswer> {
    const { host, tls } = this.remote
    const isJson = typeof body === 'object'
    for (let tries = 0; ; tries++) {
      const answer = await fetch(this.#origin + path, {
        method,
        redirect: 'manual',
        headers: { ...headers, Host: host, ...(isJson && { 'Content-Type': 'application/json' }) },
        ...(body && { body: isJson ? JSON.stringify(body) : (body as string) }),
        ...(tls && { tls }),
      })
      const text = await answer.text()
      const wait = Number(answer.headers.get('retry-after'))
      if (answer.status !== 429 || !(wait > 0) || tries === RETRIES_MAX) {
        return { status: answer.status, headers: answer.headers, text }
      }
      await Bun.sleep(wait * 1000)
    }
  }

  /** Throws unless the service proves that its host has printed the token. */
  async #proveToken(key: string, token: string): Promise<void> {
    const at = token.lastIndexOf('.')
    const headers = { 'X-API-Key': key, 'X-Bench-Token': token.slice(0, at) }
    const { status, text } = await this.call({ path: '/-/bench-token', headers })
    const expected = JSON.stringify({ answer: token.slice(at + 1) })
    if (at > 0 && status === 200 && text === expected) return
    throw new Error(
      `${this.remote.host} does not know this token: it is no Hopcode, or the token is of ` +
        'another host or account, or older than an hour.',
    )
  }

  async #measureRoundTrips(): Promise<{ tcp: number; tls: number }> {
    const { address, tls } = this.remote
    const timesOf = async (remote: Pick<Remote, 'address' | 'tls'>) => {
      const times: number[] = []
      for (let n = 0; n < ROUND_TRIPS; n++) {
        const connection = new Connection({ answered() {}, lost() {} })
        const startedAt = performance.now()
        await connection.open(remote, this.port)
        times.push(performance.now() - startedAt)
        connection.close()
      }
      return median(times)
    }
    const tcp = await timesOf({ address })
    return { tcp, tls: tls ? (await timesOf({ address, tls })) - tcp : Number.NaN }
  }
}
