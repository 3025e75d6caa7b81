import { networkInterfaces } from 'node:os'
import { type MonotonicClock, monotonicClock, SECOND } from '../lib/clock.ts'
import { canonicalHost } from './match.ts'

/** Interval of reading the addresses: a machine may get another one while the service runs. */
const READ_AGAIN_MS = 10 * SECOND

const LOOPBACK = ['127.0.0.1', '[::1]']
/** On Linux, a connection to these reaches the machine itself. */
const UNSPECIFIED = ['0.0.0.0', '[::]']

interface OwnAddressOptions {
  /** Where the service listens: an address, a name or all addresses (`0.0.0.0`, `::`). */
  host: string
  /** The ports that it listens on; undefined before that. */
  ports: () => readonly (number | undefined)[]
  /** This machine's addresses, as `os.networkInterfaces` gives them. */
  machine?: () => string[]
  monotonic?: MonotonicClock
}

/** Recognizes URLs of the ports on which this service listens: a link to one could loop. */
export class OwnAddress {
  readonly #options: Required<OwnAddressOptions>
  #own: ReadonlySet<string> = new Set()
  #readAgainAt = Number.NEGATIVE_INFINITY

  constructor(options: OwnAddressOptions) {
    this.#options = { machine: machineAddresses, monotonic: monotonicClock, ...options }
  }

  /** `host`: in the form of `hostOf`. `port`: as `URL.port`, empty for the scheme's default. */
  isOwn(host: string, { port, protocol }: Pick<URL, 'port' | 'protocol'>): boolean {
    const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
    if (!this.#options.ports().includes(number)) return false
    const address = isLocalhost(host) ? '127.0.0.1' : host
    return this.#addresses().has(address.startsWith('127.') ? '127.0.0.1' : address)
  }

  #addresses(): ReadonlySet<string> {
    const now = this.#options.monotonic()
    if (now >= this.#readAgainAt) {
      this.#readAgainAt = now + READ_AGAIN_MS
      this.#own = this.#read()
    }
    return this.#own
  }

  #read(): ReadonlySet<string> {
    const { host, machine } = this.#options
    const own = hostNamed(host) ?? ''
    if (UNSPECIFIED.includes(own)) return new Set([...UNSPECIFIED, ...LOOPBACK, ...machine()])
    if (isLocalhost(own) || LOOPBACK.includes(own)) return new Set([...UNSPECIFIED, ...LOOPBACK])
    return new Set([own])
  }
}

const isLocalhost = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

function machineAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.flatMap(({ address }) => hostNamed(address.replace(/%.*$/, '')) ?? [])
}

/** An address or a name, in the form of `hostOf`; undefined if it is neither. */
function hostNamed(text: string): string | undefined {
  const url = URL.parse(text.includes(':') ? `http://[${text}]` : `http://${text}`)
  return url ? canonicalHost(url.hostname) : undefined
}
