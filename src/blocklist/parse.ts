/**
 * The list formats, recognized line by line, so that a file may mix them:
 * - hosts: `0.0.0.0 bad.example worse.example`. Only lines of an unspecified or loopback address
 *   block; another address is an ordinary mapping. Names of the machine itself are ignored.
 * - plain: `bad.example`, `*.bad.example`, `.bad.example`, `192.0.2.7`, `2001:db8::7`.
 * - Adblock: `||bad.example^`. An exception, `@@||fine.bad.example^`, exempts its host and all
 *   below it from this file, not from others. A rule is ignored if its options restrict it to some
 *   pages or kinds of request, or if it has a path or a wildcard; so are cosmetic rules.
 * - URLhaus: `http://bad.example/x`. The whole host is blocked.
 * A single label (`com`, `||com^`) would block a top-level domain and is ignored.
 */

import { canonicalHost, type HostSetBuilder } from './match.ts'

const LINE_LENGTH_MAX = 65_536

/** The hosts of one file: those that it blocks, and those that its exceptions exempt. */
type HostList = Record<'blocked' | 'exempt', Pick<HostSetBuilder, 'add' | 'size'>>

/** Why a file is not a blocklist. The message is for the log. */
export class BlocklistError extends Error {
  override readonly name = 'BlocklistError'
}

/**
 * Adds the hosts of a file to `list`. The file may be cut into chunks anywhere; a chunk is not used
 * after the next one is requested. Returns the number of lines in no known form. A file that is
 * empty or contains only comments is an empty list. Throws BlocklistError if the file is binary or
 * a web page, or has content but no entry.
 */
export function parseBlocklist(chunks: Iterable<Uint8Array>, list: HostList): number {
  const decoder = new TextDecoder()
  let rest = ''
  let isFirst = true
  let unknownLines = 0
  const read = (line: string) => {
    const text = line.trim()
    if (text === '' || COMMENT.test(text)) return
    if (isFirst && text.startsWith('<')) throw new BlocklistError('the file is a web page')
    isFirst = false
    const { hosts, isException } = parseEntry(text)
    for (const host of hosts) if (host) (isException ? list.exempt : list.blocked).add(host)
    if (hosts.includes(undefined)) unknownLines++
  }
  for (const chunk of chunks) {
    if (chunk.includes(0)) throw new BlocklistError('the file is binary')
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(LINE_END)
    rest = lines.pop() ?? ''
    for (const line of lines) read(line)
    if (rest.length > LINE_LENGTH_MAX) {
      throw new BlocklistError(`a line is longer than ${LINE_LENGTH_MAX} characters`)
    }
  }
  read(rest + decoder.decode())
  if (unknownLines > 0 && list.blocked.size + list.exempt.size === 0) {
    throw new BlocklistError('the file has content, but no entry in a known form')
  }
  return unknownLines
}

/** A carriage return alone ends a line, too; one before a newline only adds an empty line. */
const LINE_END = /[\r\n]/

/** `[Adblock Plus 2.0]` is a heading, `[::1]` an address. */
const COMMENT = /^(?:[!#;]|\[(?![\da-f:.]+\]))/i
const COSMETIC = /^\S*#[@?$%]{0,2}#/
const WITH_SCHEME = /^https?:\/\/\S+/i
const ADBLOCK = /^(@@)?\|\|(?:\*\.)?([^\s/^$|*]+)[/^]?\*?\|?(?:\$(.*))?$/
/** Options after which a rule still blocks the whole host, as in AdGuard's list compiler. */
const WHOLE_HOST = /^(?:all|doc|document|popup|network|important|third-party|3p|match-case)$/i

interface Entry {
  /** undefined for a host that is in no known form. */
  hosts: readonly (string | undefined)[]
  isException: boolean
}

const blocks = (...hosts: (string | undefined)[]): Entry => ({ hosts, isException: false })
const UNKNOWN = blocks(undefined)

function parseEntry(text: string): Entry {
  if (text.startsWith('||') || text.startsWith('@@')) return parseAdblock(text)
  const address = WITH_SCHEME.exec(text)?.[0]
  if (address !== undefined) return blocks(entryOf(URL.parse(address)))
  if (COSMETIC.test(text)) return UNKNOWN
  const comment = text.indexOf('#')
  const words = (comment < 0 ? text : text.slice(0, comment).trimEnd()).split(/\s+/)
  const [first = '', ...names] = words
  if (names.length === 0) return blocks(hostNamed(first))
  if (!isSinkhole(first)) return UNKNOWN
  return blocks(...names.filter((name) => !isOwnName(name)).map(hostNamed))
}

function parseAdblock(text: string): Entry {
  const [, exception, name, options = ''] = ADBLOCK.exec(text) ?? []
  if (name === undefined) return UNKNOWN
  const isWhole = options.split(',').every((option) => WHOLE_HOST.test(option.trim()))
  if (options !== '' && !isWhole) return UNKNOWN
  return { hosts: [hostNamed(name)], isException: exception !== undefined }
}

const ENTRY = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)+|\[[\da-f:]+\])$/

/** The host of a name or address; undefined if it is neither, or a single label. */
function hostNamed(name: string): string | undefined {
  const bare = name.replace(/^\*?\./, '')
  const isIpv6 = !bare.startsWith('[') && bare.indexOf(':') !== bare.lastIndexOf(':')
  const url = bare.includes('@') ? null : URL.parse(`http://${isIpv6 ? `[${bare}]` : bare}`)
  return url?.pathname === '/' && url.search + url.hash === '' ? entryOf(url) : undefined
}

function entryOf(url: URL | null): string | undefined {
  if (!url) return undefined
  const host = canonicalHost(url.hostname)
  return ENTRY.test(host) && host.length <= 253 ? host : undefined
}

/** Unspecified or loopback: the addresses that a hosts file gives to blocked names. */
const SINKHOLE = /^(?:0\.0\.0\.0|127(?:\.\d+){3}|\[::1?\])$/

function isSinkhole(word: string): boolean {
  if (!/^[\d.]+$|:/.test(word)) return false
  const host = hostNamed(word)
  return host !== undefined && SINKHOLE.test(host)
}

/**
 * A hosts file's names of the machine itself: single labels, `localhost.localdomain`, `0.0.0.0`.
 */
function isOwnName(name: string): boolean {
  return !/[.:]/.test(name) || /^localhost\d?\.localdomain\d?$/i.test(name) || isSinkhole(name)
}
