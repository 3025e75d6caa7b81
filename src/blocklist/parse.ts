/**
 * The list formats, recognized line by line, so that a file may mix them:
 * - hosts: `0.0.0.0 bad.example worse.example`. Only lines of an unspecified or loopback address
 *   block; another address is an ordinary mapping. Names of the machine itself are passed over.
 * - plain: `bad.example`, `*.bad.example`, `.bad.example`, `192.0.2.7`, `2001:db8::7`.
 * - Adblock: `||bad.example^`. An exception, `@@||fine.bad.example^`, exempts its host and all
 *   below it from this file, not from others. Options that narrow a rule to some pages or kinds of
 *   request do not say that the host is bad: such rules, paths, wildcards and cosmetic rules are
 *   passed over.
 * - URLhaus: `http://bad.example/x`. The whole host is blocked.
 * A single label (`com`, `||com^`) is a mistake that would block a top-level domain: passed over.
 */

import { canonicalHost } from './match.ts'

const LINE_LENGTH_MAX = 65_536

/** Receives hosts, each any number of times. A `Set` of strings is one. */
interface HostCollection {
  add(host: string): unknown
  readonly size: number
}

/** The hosts of one file: those that it blocks, and those that its exceptions exempt. */
interface HostList {
  blocked: HostCollection
  exempt: HostCollection
}

/** Why a file is no blocklist. The message is for the log. */
export class BlocklistError extends Error {
  override readonly name = 'BlocklistError'
}

/**
 * Adds the hosts of a list to `list`. The bytes may be cut anywhere; a chunk is not used after the
 * next one is requested. Returns the number of lines in no known form. An empty file, or one of
 * comments alone, is an empty list. Throws BlocklistError if the file is binary or a web page, or
 * has content but not one entry.
 */
export function parseBlocklist(chunks: Iterable<Uint8Array>, list: HostList): number {
  const reader = new LineReader(list)
  const decoder = new TextDecoder()
  let rest = ''
  for (const chunk of chunks) {
    if (chunk.includes(0)) throw new BlocklistError('the file is binary')
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(LINE_END)
    rest = lines.pop() ?? ''
    for (const line of lines) reader.read(line)
    if (rest.length > LINE_LENGTH_MAX) {
      throw new BlocklistError(`a line is longer than ${LINE_LENGTH_MAX} characters`)
    }
  }
  reader.read(rest + decoder.decode())
  const { unknownLines } = reader
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
/**
 * Options that leave a rule a statement about its host: those that AdGuard's list compiler drops.
 */
const OPTIONS_HELD = /^(?:all|doc|document|popup|network|important|third-party|3p|match-case)$/i

class LineReader {
  readonly #list: HostList
  unknownLines = 0
  #isFirst = true

  constructor(list: HostList) {
    this.#list = list
  }

  read(line: string): void {
    const text = line.trim()
    if (text === '' || COMMENT.test(text)) return
    if (this.#isFirst && text.startsWith('<')) throw new BlocklistError('the file is a web page')
    this.#isFirst = false
    if (!this.#readEntry(text)) this.unknownLines++
  }

  #readEntry(text: string): boolean {
    if (text.startsWith('||') || text.startsWith('@@')) return this.#readAdblock(text)
    const address = WITH_SCHEME.exec(text)?.[0]
    if (address !== undefined) return this.#add(this.#list.blocked, entryOf(URL.parse(address)))
    if (COSMETIC.test(text)) return false
    const words = wordsOf(text)
    const [first = '', ...names] = words
    if (names.length === 0) return this.#add(this.#list.blocked, hostNamed(first))
    return isSinkhole(first) && this.#readNames(names)
  }

  #readAdblock(text: string): boolean {
    const [, exception, name, options] = ADBLOCK.exec(text) ?? []
    if (name === undefined) return false
    if (options && !options.split(',').every((option) => OPTIONS_HELD.test(option.trim()))) {
      return false
    }
    return this.#add(exception ? this.#list.exempt : this.#list.blocked, hostNamed(name))
  }

  #readNames(names: readonly string[]): boolean {
    let known = true
    for (const name of names) {
      if (!isOwnName(name) && !this.#add(this.#list.blocked, hostNamed(name))) known = false
    }
    return known
  }

  #add(set: HostCollection, host: string | undefined): boolean {
    if (host !== undefined) set.add(host)
    return host !== undefined
  }
}

function wordsOf(text: string): string[] {
  const comment = text.indexOf('#')
  return (comment < 0 ? text : text.slice(0, comment).trimEnd()).split(/\s+/)
}

const ENTRY = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)+|\[[\da-f:]+\])$/

/** The host of an entry by name or address; undefined where it is none, or one label only. */
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

/** Unspecified or loopback: what a hosts file sends a blocked name to. */
const SINKHOLE = /^(?:0\.0\.0\.0|127(?:\.\d+){3}|\[::1?\])$/

function isSinkhole(word: string): boolean {
  if (!/^[\d.]+$|:/.test(word)) return false
  const host = hostNamed(word)
  return host !== undefined && SINKHOLE.test(host)
}

/**
 * Names that a hosts file gives the machine itself: single labels, `localhost.localdomain`,
 * `0.0.0.0`.
 */
function isOwnName(name: string): boolean {
  return !/[.:]/.test(name) || /^localhost\d?\.localdomain\d?$/i.test(name) || isSinkhole(name)
}
