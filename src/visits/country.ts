import { existsSync, readFileSync, statSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { type CountryResponse, Reader } from 'mmdb-lib'
import { type ClientKey, clientIp, isIpv4 } from '../hot/client-address.ts'
import { SECOND } from '../lib/clock.ts'
import { messageOf } from '../lib/thread.ts'

const FILE_BYTES_MAX = 256 * 1024 * 1024
/** Precedes the metadata at the end of an .mmdb file. */
const METADATA_START = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')

/** Returns the code of a country (ISO 3166-1 alpha-2), or undefined. */
type FindCountry = (client: ClientKey) => string | undefined

/**
 * The countries of addresses, from a file that the operator has downloaded: an .mmdb such as
 * GeoLite2 or DB-IP, or the text file of Debian's tor-geoipdb, with its file for IPv6 beside it
 * (`geoip` and `geoip6`). The content tells them apart. IPv6 is looked up by the first 64 bits.
 */
export class Countries {
  readonly #file: string
  #find: FindCountry = () => undefined
  /** Size and time of the files that were read. */
  #version = ''
  /** What is wrong with the present file; undefined if nothing is. */
  problem: string | undefined

  constructor(file: string) {
    this.#file = file
    this.refresh()
  }

  findByClient(client: ClientKey): string | undefined {
    try {
      return this.#find(client)
    } catch (error) {
      this.problem = `COUNTRY_FILE ${this.#file} has a damaged record: ${messageOf(error)}`
      return undefined
    }
  }

  /** Reads the file again if it has changed. A damaged one leaves the last good one in use. */
  refresh(): void {
    try {
      const version = [this.#file, `${this.#file}6`].map(versionOf).join()
      if (version === this.#version) return
      this.#version = version
      this.#find = readCountries(this.#file)
      this.problem = undefined
    } catch (error) {
      this.problem = `COUNTRY_FILE ${this.#file} cannot be used: ${messageOf(error)}`
    }
  }
}

/** Time between two checks whether the file has changed. */
export const COUNTRY_CHECK_MS = 60 * SECOND

/** Countries that are read with the first look-up, because most services need none. */
export class LazyCountries {
  readonly #file: string
  #countries: Countries | undefined
  #checkedAt = 0

  constructor(file: string) {
    this.#file = file
  }

  findByClient(client: ClientKey): string | undefined {
    const now = performance.now()
    const isDue = now - this.#checkedAt > COUNTRY_CHECK_MS
    if (this.#countries && isDue) this.#countries.refresh()
    this.#countries ??= new Countries(this.#file)
    if (isDue) this.#checkedAt = now
    return this.#countries.findByClient(client)
  }
}

function versionOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat ? `${stat.ino} ${stat.size} ${stat.mtimeMs}` : ''
}

/** Throws if the file is absent or damaged. */
function readCountries(file: string): FindCountry {
  const bytes = readBounded(file)
  if (bytes.lastIndexOf(METADATA_START) >= 0) return mmdbFinder(bytes)
  const beside = `${file}6`
  const ipv6 = existsSync(beside) ? readBounded(beside).toString('latin1') : ''
  return rangeFinder(bytes.toString('latin1'), ipv6)
}

function readBounded(file: string): Buffer {
  const stat = statSync(file)
  if (!stat.isFile()) throw new Error('it is not a file')
  if (stat.size > FILE_BYTES_MAX) throw new Error('it is larger than 256 MiB')
  return readFileSync(file)
}

function mmdbFinder(bytes: Buffer): FindCountry {
  const reader = new Reader<CountryResponse & { country_code?: string }>(bytes)
  const hasIpv6 = reader.metadata.ipVersion === 6
  const find: FindCountry = (client) => {
    // The package would look for the first 32 bits in a file for IPv4.
    if (!hasIpv6 && !isIpv4(client)) return undefined
    const found = reader.get(isIpv4(client) ? clientIp(client) : clientIp(client).slice(0, -3))
    const code = found?.country?.iso_code ?? found?.country_code
    return typeof code === 'string' && /^[A-Z]{2}$/.test(code) ? code : undefined
  }
  // Most damaged files fail with the first look-ups: 8.8.8.8 and 2001:4860::.
  find({ keyHigh: IPV4, keyLow: 0x08080808 })
  find({ keyHigh: 0x20014860, keyLow: 0 })
  return find
}

const IPV4 = 0xffff0001

/** Ranges in ascending order. Addresses have 32 bits, or the first 64 as two numbers. */
interface Ranges {
  from: Float64Array
  to: Float64Array
  codes: string[]
}

const IPV4_LINE = /^(\d{1,10}),(\d{1,10}),([A-Z?]{2})$/gm
const IPV6_LINE = /^([\da-f:]{2,39}),([\da-f:]{2,39}),([A-Z?]{2})$/gim

function rangeFinder(ipv4Text: string, ipv6Text: string): FindCountry {
  const ipv4 = rangesIn(ipv4Text, IPV4_LINE, Number)
  // 53 bits tell networks apart: countries have blocks of /48 and larger ones.
  const ipv6 = rangesIn(ipv6Text, IPV6_LINE, (text) => {
    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv6.parse(text).parts
    return topBits(a * 0x10000 + b, c * 0x10000 + d)
  })
  if (ipv4.codes.length === 0) {
    throw new Error('it is neither an .mmdb file nor a list of ranges as in tor-geoipdb')
  }
  return (client) =>
    isIpv4(client)
      ? codeAt(ipv4, client.keyLow)
      : codeAt(ipv6, topBits(client.keyHigh, client.keyLow))
}

function rangesIn(text: string, line: RegExp, parse: (address: string) => number): Ranges {
  const rows: [number, number, string][] = []
  for (const [, from = '', to = '', code = ''] of text.matchAll(line)) {
    rows.push([parse(from), parse(to), code])
  }
  rows.sort(([a], [b]) => a - b)
  return {
    from: Float64Array.from(rows, ([from]) => from),
    to: Float64Array.from(rows, ([, to]) => to),
    codes: rows.map(([, , code]) => code),
  }
}

function codeAt({ from, to, codes }: Ranges, address: number): string | undefined {
  let low = 0
  let high = from.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((from[middle] as number) <= address) low = middle + 1
    else high = middle
  }
  const at = low - 1
  if (at < 0 || address > (to[at] as number)) return undefined
  const code = codes[at]
  return code === '??' ? undefined : code
}

const topBits = (high: number, low: number): number => high * 2 ** 21 + (low >>> 11)
