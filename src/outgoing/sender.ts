import { lookup, Resolver as NameServers } from 'node:dns/promises'
import { type IncomingMessage, request as startRequest } from 'node:http'
import { isIP, type Socket, connect as tcpConnect } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import { canonicalHost } from '../blocklist/match.ts'
import type { OwnAddress } from '../blocklist/own-address.ts'
import { withTimeout } from '../lib/deadline.ts'
import { urlHost } from '../lib/local-address.ts'
import { type AllowedHosts, isPublicAddress } from './addresses.ts'

/**
 * The only sender of requests to addresses that users have chosen. It gives node:http a socket that
 * is connected to a checked address, so that no look-up and no proxy comes between.
 */

export interface OutgoingRequest {
  method: 'HEAD' | 'GET' | 'POST'
  url: URL
  /** Values without line breaks. `Host`, `Connection` and `Content-Length` are set here. */
  headers?: Record<string, string>
  body?: string
  /** The longest wait for a slot; `timeout` if there is none by then. Default: no limit. */
  slotMs?: number
  /** From the look-up of the name to the end of the response. */
  timeoutMs: number
  /** Of the body of the response, which is thrown away. More is cut off by closing. */
  maxBytes: number
  /** http outside too, at port 80 or from 1024 on. */
  allowsHttp?: boolean
  /** Inside receivers of `OUTGOING_HOSTS` are refused too. */
  isPublicOnly?: boolean
}

const ERRORS = [
  'address_not_allowed',
  'timeout',
  'no_such_name',
  'refused',
  'bad_certificate',
] as const
export type OutgoingError = (typeof ERRORS)[number] | 'connection_failed'

export interface ResponseHead {
  status: number
  headers: { location?: string; retryAfter?: string }
}

/** `ms`: without the wait for a slot. */
export type OutgoingResult =
  | ({ ok: true; ms: number } & ResponseHead)
  | { ok: false; error: OutgoingError; ms: number }

/** All addresses of a name. Rejects with `no_such_name` if a name server says that it has none. */
export type Resolver = (name: string) => Promise<readonly string[]>

interface SenderOptions {
  hosts: AllowedHosts
  /** The ports of this service, which it never connects to. */
  own?: Pick<OwnAddress, 'isOwn'> | undefined
  /** Default: that of the system. */
  resolve?: Resolver
  /** Certificates of further authorities, as PEM. */
  ca?: string | undefined
}

const REQUESTS_MAX = 16
/** Mail, databases and the like have lower ports. */
const PORT_MIN = 1024
const HEAD_BYTES_MAX = 16 * 1024
/** Of responses 1xx. A flood of them would keep this thread from its timers. */
const INFORMATION_MAX = 16

export class Sender {
  readonly #options: SenderOptions
  readonly #busyHosts = new Set<string>()
  #waiting: { host: string; start: () => void }[] = []
  readonly #sockets = new Set<Socket>()
  #isClosed = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /**
   * Sends one request and waits for its response. `REQUESTS_MAX` run at a time, and one for each
   * host; others wait. Never follows a redirect, never rejects, and never resolves after `close`.
   */
  async send(request: OutgoingRequest): Promise<OutgoingResult> {
    const host = canonicalHost(request.url.hostname)
    if (!(await this.#takeSlot(host, request.slotMs))) {
      return { ok: false, error: 'timeout', ms: 0 }
    }
    const startedAt = performance.now()
    const ms = () => Math.round(performance.now() - startedAt)
    try {
      const head = await this.#run(request, startedAt + request.timeoutMs)
      return { ok: true, status: head.status, headers: head.headers, ms: ms() }
    } catch (error) {
      if (this.#isClosed) return new Promise<never>(() => {})
      return { ok: false, error: wordOf(error), ms: ms() }
    } finally {
      this.#releaseSlot(host)
    }
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** False: there was none within `slotMs`. */
  async #takeSlot(host: string, slotMs?: number): Promise<boolean> {
    if (this.#isFree(host)) {
      this.#busyHosts.add(host)
      return true
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const one = { host, start: () => resolve(true) }
    this.#waiting.push(one)
    if (slotMs === undefined) return promise
    const giveUp = () => {
      if (this.#isClosed) return
      this.#waiting = this.#waiting.filter((other) => other !== one)
      resolve(false)
    }
    const timer = setTimeout(giveUp, slotMs)
    return promise.finally(() => clearTimeout(timer))
  }

  #releaseSlot(host: string): void {
    this.#busyHosts.delete(host)
    const next = this.#waiting.find((one) => this.#isFree(one.host))
    if (!next) return
    this.#waiting = this.#waiting.filter((one) => one !== next)
    this.#busyHosts.add(next.host)
    next.start()
  }

  #isFree(host: string): boolean {
    return this.#busyHosts.size < REQUESTS_MAX && !this.#busyHosts.has(host)
  }

  async #run(request: OutgoingRequest, deadline: number): Promise<ResponseHead> {
    const inTime = <Result>(work: Promise<Result>, parts = 1) => {
      // Nobody awaits it after its time.
      work.catch(() => {})
      return withTimeout((deadline - performance.now()) / parts, work, 'timeout')
    }
    const addresses = await inTime(this.#findAddresses(request.url))
    this.#refuseForbidden(request, addresses)
    let failure: unknown
    for (const [index, address] of addresses.entries()) {
      if (this.#isClosed) break
      const socket = this.#open(request.url, address)
      try {
        // The next address has time left: this machine may have no IPv6.
        await inTime(connected(socket), Math.min(4, addresses.length - index))
        return await inTime(exchange(socket, request))
      } catch (error) {
        failure = error
        if (socket.bytesWritten > 0 || wordOf(error) === 'bad_certificate') throw error
      } finally {
        socket.destroy()
      }
    }
    throw failure
  }

  async #findAddresses({ hostname }: URL): Promise<readonly string[]> {
    const literal = hostname.replace(/^\[(.*)\]$/, '$1')
    return isIP(literal) === 0 ? (this.#options.resolve ?? systemResolver)(hostname) : [literal]
  }

  /** Throws unless all addresses may be connected to, so that none of them is a matter of luck. */
  #refuseForbidden(request: OutgoingRequest, addresses: readonly string[]): void {
    const { hosts, own } = this.#options
    const { url, allowsHttp = false, isPublicOnly = false } = request
    const { protocol, hostname } = url
    const [port, isHttps] = [portOf(url), protocol === 'https:']
    const isUsual = (isHttps || allowsHttp) && (port === (isHttps ? 443 : 80) || port >= PORT_MIN)
    const isNamed = hosts.hasName(canonicalHost(hostname))
    const mayConnect = (address: string): boolean => {
      if (own?.isOwn(canonicalHost(urlHost(address)), url)) return false
      if (!isPublicOnly && (isNamed || hosts.hasAddress(address))) return true
      return isUsual && urlHost(address) !== hostname && isPublicAddress(address)
    }
    const isPlain = url.username + url.password === '' && /^https?:$/.test(protocol)
    if (!isPlain || !addresses.every(mayConnect)) throw new Error('address_not_allowed')
  }

  #open(url: URL, host: string): Socket {
    const { ca } = this.#options
    const to = { host, port: portOf(url) }
    const tls = {
      // An address is no name: its certificate is that of `host`.
      ...(urlHost(host) !== url.hostname && { servername: canonicalHost(url.hostname) }),
      ...(ca !== undefined && { ca }),
      ALPNProtocols: ['http/1.1'],
    }
    const socket = url.protocol === 'https:' ? tlsConnect({ ...to, ...tls }) : tcpConnect(to)
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // `connected` and `exchange` have ended; nobody else listens.
    socket.on('error', () => {})
    return socket
  }
}

function wordOf(error: unknown): OutgoingError {
  const { message = '', code = '' } = (error ?? {}) as { message?: string; code?: string }
  const word = ERRORS.find((one) => one === message)
  if (word) return word
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code === 'ECONNREFUSED') return 'refused'
  const isCertificate = /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO|CRL|INVALID_CA|HOSTNAME_MISMATCH/
  return isCertificate.test(code) ? 'bad_certificate' : 'connection_failed'
}

const portOf = ({ port, protocol }: URL): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

/** Resolves when the socket can be written to, with TLS after the certificate was verified. */
function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => resolve())
  })
}

/**
 * Sends the request, and reads the response with up to `maxBytes` of its body. The caller closes
 * the connection. Rejects if there is no head that is HTTP and has at most `HEAD_BYTES_MAX`.
 */
function exchange(socket: Socket, request: OutgoingRequest): Promise<ResponseHead> {
  const { method, url, headers, body, maxBytes } = request
  return new Promise((resolve, reject) => {
    let head: ResponseHead | undefined
    const finish = (error?: unknown) => (head ? resolve(head) : reject(error))
    const sent = startRequest({
      createConnection: () => socket,
      method,
      path: url.pathname + url.search,
      headers: { Host: url.host, Connection: 'close', ...headers },
      maxHeaderSize: HEAD_BYTES_MAX,
      // Where a response ends can be no trap: it is the only one of its connection.
      insecureHTTPParser: true,
    })
    let informationLeft = INFORMATION_MAX
    sent.on('information', () => {
      if (informationLeft-- === 0) socket.destroy()
    })
    sent.on('response', (response) => {
      head = headOf(response)
      let bytesLeft = maxBytes
      response.on('data', (bytes: Buffer) => {
        bytesLeft -= bytes.length
        if (bytesLeft <= 0) finish()
      })
      for (const event of ['end', 'error', 'close']) response.once(event, finish)
    })
    sent.on('error', finish)
    sent.end(body)
  })
}

function headOf({ statusCode = 0, headers }: IncomingMessage): ResponseHead {
  const { location, 'retry-after': retryAfter } = headers
  return {
    status: statusCode,
    headers: {
      // Each byte has become one character.
      ...(location && { location: Buffer.from(location, 'latin1').toString() }),
      ...(retryAfter && { retryAfter }),
    },
  }
}

/** The resolver of the system knows /etc/hosts, but not why it has found nothing. */
const systemResolver: Resolver = async (name) => {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address)
  } catch (cause) {
    const servers = new NameServers({ timeout: 2000, tries: 2 })
    const answers = await Promise.allSettled([servers.resolve4(name), servers.resolve6(name)])
    const isNone = answers.every((one) => /^(ENOTFOUND|ENODATA)$/.test(codeOf(one)))
    throw new Error(isNone ? 'no_such_name' : 'no answer of a name server', { cause })
  }
}

const codeOf = (answer: PromiseSettledResult<unknown>): string =>
  answer.status === 'rejected' ? String(answer.reason.code) : ''
