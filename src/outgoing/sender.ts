import { lookup, Resolver as NameServers } from 'node:dns/promises'
import { isIP, type Socket, connect as tcpConnect } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import { canonicalHost } from '../blocklist/match.ts'
import type { OwnAddress } from '../blocklist/own-address.ts'
import { withTimeout } from '../lib/deadline.ts'
import { urlHost } from '../lib/local-address.ts'
import { type AllowedHosts, isPublicAddress } from './addresses.ts'
import { HostSlots } from './host-slots.ts'
import { type ResponseHead, readResponse } from './response.ts'

/**
 * The only sender of requests to addresses that users have chosen. It writes HTTP/1.1 to a socket
 * by itself: `fetch` of Bun, on which node:https is built, asks a resolver of its own, follows the
 * proxies of the environment, and reads what it has not been asked for.
 */

export interface OutgoingRequest {
  method: 'HEAD' | 'GET' | 'POST'
  url: URL
  /** Values without line breaks. `Host`, `Connection` and `Content-Length` are set here. */
  headers?: Record<string, string>
  body?: string
  /** For the whole request, from the look-up of the name to the end of the response. */
  timeoutMs: number
  /** Of the body of the response, which is thrown away. More is cut off by closing. */
  maxBytes: number
  /** http outside too, at port 80 or from 1024 on. */
  allowsHttp?: boolean
}

export type OutgoingError =
  | 'address_not_allowed'
  | 'timeout'
  | 'no_such_name'
  | 'refused'
  | 'bad_certificate'
  | 'connection_failed'

/** `ms`: without the wait for a slot. */
export type OutgoingResult =
  | ({ ok: true; ms: number } & ResponseHead)
  | { ok: false; error: OutgoingError; ms: number }

/**
 * All IPv4 and IPv6 addresses of a name. Rejects with an error of the code ENOTFOUND if a name
 * server has answered that it has none.
 */
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
/** Addresses of a name that are tried. */
const ADDRESSES_MAX = 4

export class Sender {
  readonly #options: SenderOptions
  readonly #slots = new HostSlots(REQUESTS_MAX)
  readonly #sockets = new Set<Socket>()
  #isClosed = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /**
   * Sends one request and waits for its response. Waits for its turn: `REQUESTS_MAX` run at a time,
   * and one for each host. Never follows a redirect, never rejects, and never resolves after
   * `close`.
   */
  async send(request: OutgoingRequest): Promise<OutgoingResult> {
    const host = canonicalHost(request.url.hostname)
    await this.#slots.take(host)
    const startedAt = performance.now()
    const ms = () => Math.round(performance.now() - startedAt)
    try {
      const head = await this.#run(request, startedAt + request.timeoutMs)
      return { ok: true, ...head, ms: ms() }
    } catch (error) {
      if (this.#isClosed) return new Promise<never>(() => {})
      return { ok: false, error: wordOf(error), ms: ms() }
    } finally {
      this.#slots.release(host)
    }
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  async #run(request: OutgoingRequest, deadline: number): Promise<ResponseHead> {
    if (this.#isClosed) throw new Failure('connection_failed')
    const left = () => Math.max(1, deadline - performance.now())
    const addresses = await inTime(left(), this.#findAddresses(request.url))
    this.#refuseForbidden(request, addresses)
    let failure = new Failure('connection_failed')
    for (const [index, address] of addresses.slice(0, ADDRESSES_MAX).entries()) {
      const share = left() / (Math.min(addresses.length, ADDRESSES_MAX) - index)
      const socket = this.#open(request.url, address)
      try {
        await inTime(share, connected(socket))
      } catch (error) {
        socket.destroy()
        // A network that this machine does not have, often IPv6, says nothing about the receiver.
        const word = wordOf(error)
        if (word === 'bad_certificate') throw error
        if (word !== 'connection_failed') failure = new Failure(word)
        continue
      }
      try {
        return await inTime(left(), readResponse(socket, request))
      } finally {
        socket.destroy()
      }
    }
    throw failure
  }

  async #findAddresses({ hostname }: URL): Promise<readonly string[]> {
    const literal = hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(literal) !== 0) return [literal]
    const { resolve = systemResolver } = this.#options
    try {
      return await resolve(hostname)
    } catch (error) {
      throw new Failure(codeOf(error) === 'ENOTFOUND' ? 'no_such_name' : 'connection_failed')
    }
  }

  /** Throws unless all addresses may be connected to, so that none of them is a matter of luck. */
  #refuseForbidden({ url, allowsHttp = false }: OutgoingRequest, addresses: readonly string[]) {
    const { hosts, own } = this.#options
    const isNamed = hosts.hasName(url.hostname)
    const isLiteral = addresses.some((address) => urlHost(address) === url.hostname)
    const mayConnect = (address: string): boolean => {
      if (isIP(address) === 0 || own?.isOwn(canonicalHost(urlHost(address)), url)) return false
      if (isNamed || hosts.hasAddress(address)) return true
      return !isLiteral && isPublicAddress(address) && isUsualPort(url, allowsHttp)
    }
    const isPlain = url.username === '' && url.password === '' && /^https?:$/.test(url.protocol)
    if (!isPlain || !addresses.every(mayConnect)) throw new Failure('address_not_allowed')
  }

  #open(url: URL, host: string): Socket {
    const { ca } = this.#options
    const name = canonicalHost(url.hostname)
    const socket =
      url.protocol === 'https:'
        ? tlsConnect({
            host,
            port: portOf(url),
            ...(isIP(host) !== 0 && urlHost(host) === url.hostname ? {} : { servername: name }),
            ALPNProtocols: ['http/1.1'],
            ...(ca && { ca }),
          })
        : tcpConnect({ host, port: portOf(url) })
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }
}

/** Why a request was not made, or not answered. */
class Failure extends Error {
  readonly word: OutgoingError

  constructor(word: OutgoingError) {
    super(word)
    this.word = word
  }
}

const inTime = <Result>(ms: number, work: Promise<Result>): Promise<Result> => {
  // After the time, nobody awaits it.
  work.catch(() => {})
  return withTimeout(ms, work, 'timeout')
}

function wordOf(error: unknown): OutgoingError {
  if (error instanceof Failure) return error.word
  if (error instanceof Error && error.message === 'timeout') return 'timeout'
  const code = codeOf(error)
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code === 'ECONNREFUSED') return 'refused'
  const isCertificate = /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO|CRL|INVALID_CA|HOSTNAME_MISMATCH/
  return isCertificate.test(code) ? 'bad_certificate' : 'connection_failed'
}

const codeOf = (error: unknown): string => String((error as { code?: unknown })?.code ?? '')

const portOf = ({ port, protocol }: URL): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

/** Mail, databases and the like have lower ports. */
const PORT_MIN = 1024

function isUsualPort(url: URL, allowsHttp: boolean): boolean {
  const port = portOf(url)
  if (url.protocol === 'https:') return port === 443 || port >= PORT_MIN
  return allowsHttp && url.protocol === 'http:' && (port === 80 || port >= PORT_MIN)
}

/** Resolves when the socket can be written to, over TLS after the certificate was verified. */
function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => resolve())
  })
}

const QUESTION_MS = 2000

/** The resolver of the system knows /etc/hosts, but not why it has found nothing. */
const systemResolver: Resolver = async (name) => {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address)
  } catch (error) {
    const servers = new NameServers({ timeout: QUESTION_MS, tries: 2 })
    const questions = await Promise.allSettled([servers.resolve4(name), servers.resolve6(name)])
    const isUnknown = questions.every(
      (one) => one.status === 'rejected' && /^(ENOTFOUND|ENODATA)$/.test(codeOf(one.reason)),
    )
    if (isUnknown) throw Object.assign(new Error(name), { code: 'ENOTFOUND' })
    throw Object.assign(new Error(name, { cause: error }), { code: 'EAI_AGAIN' })
  }
}
