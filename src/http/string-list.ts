import { setImmediate } from 'node:timers/promises'
import { AppError } from '../errors.ts'

/**
 * Reads one list of strings from a large JSON document without building the rest of the document in
 * memory. For small values and distinct names, `JSON.parse` blocks its thread for up to 150 ms per
 * MiB and needs up to forty times the text in memory. This takes about 20 ms per MiB, in slices,
 * and keeps only the strings of the list.
 */

/** Bytes scanned before other work of the thread runs: less than half a millisecond. */
const SLICE_BYTES = 16 * 1024

export type StringListDocument = Record<string, (string | null)[] | null> | null

/**
 * The document as `JSON.parse` would return it, reduced: of an object only the member `field`
 * stays, of a list in it the first `itemsMax` items, and any value but a string becomes null. The
 * last of several members with the same name counts. `bytes` must be UTF-8. Throws `invalid_json`.
 */
export async function readStringList(
  bytes: Uint8Array,
  field: string,
  itemsMax: number,
): Promise<StringListDocument> {
  const scanner = new Scanner(bytes, field, itemsMax)
  while (!scanner.scan(SLICE_BYTES)) await setImmediate()
  return scanner.document
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const LETTER_U = 0x75
const SPACE = 0x20

/** Escapes of one letter: `"` `\` `/` `b` `f` `n` `r` `t`. */
const SHORT_ESCAPES = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74])
const LITERALS = ['true', 'false', 'null'].map((word) => Buffer.from(word))

/** What the grammar allows next. */
type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | 'comma or close' | 'end'

class Scanner {
  document: StringListDocument = null
  readonly #bytes: Uint8Array
  readonly #field: string
  readonly #itemsMax: number
  #at = 0
  #expected: Expected = 'value'
  /** One byte for each open container: 1 for an object, 0 for a list. */
  #open = new Uint8Array(64)
  #depth = 0
  /** The next value belongs to the member `field` of the document. */
  #isWanted = false
  /** The list being collected, while it is open. */
  #items: (string | null)[] | undefined

  constructor(bytes: Uint8Array, field: string, itemsMax: number) {
    this.#bytes = bytes
    this.#field = field
    this.#itemsMax = itemsMax
  }

  /** Scans about `bytesMax` further. Returns whether the document is complete. */
  scan(bytesMax: number): boolean {
    const until = this.#at + bytesMax
    while (this.#at < until) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) {
        if (this.#expected !== 'end') throw new AppError('invalid_json')
        return true
      }
      if (isSpace(byte)) this.#at++
      else this.#step(byte)
    }
    return false
  }

  #step(byte: number): void {
    const isInObject = this.#depth > 0 && this.#open[this.#depth - 1] === 1
    if (this.#expected === 'value') this.#readValue(byte)
    else if (this.#expected === 'value or ]') {
      if (byte === CLOSE_LIST) this.#close()
      else this.#readValue(byte)
    } else if (this.#expected === 'name') this.#readName()
    else if (this.#expected === 'name or }') {
      if (byte === CLOSE_OBJECT) this.#close()
      else this.#readName()
    } else if (this.#expected === 'comma or close' && byte === COMMA) {
      this.#at++
      this.#expected = isInObject ? 'name' : 'value'
    } else if (
      this.#expected === 'comma or close' &&
      byte === (isInObject ? CLOSE_OBJECT : CLOSE_LIST)
    ) {
      this.#close()
    } else throw new AppError('invalid_json')
  }

  #readName(): void {
    const start = this.#at
    this.#skipString()
    if (this.#depth === 1) {
      // A name that is longer, even with each letter escaped, need not be decoded.
      const canMatch = this.#at - start <= 6 * this.#field.length + 2
      this.#isWanted = canMatch && this.#textFrom(start) === this.#field
    }
    while (isSpace(this.#bytes[this.#at])) this.#at++
    if (this.#bytes[this.#at++] !== COLON) throw new AppError('invalid_json')
    this.#expected = 'value'
  }

  #readValue(byte: number): void {
    const start = this.#at
    // Items are the values directly in the list: two containers are open, the document and it.
    const items = this.#depth === 2 ? this.#items : undefined
    const isRoom = items !== undefined && items.length < this.#itemsMax
    if (this.#isWanted && this.document) {
      this.#items = byte === OPEN_LIST ? [] : undefined
      this.document[this.#field] = this.#items ?? null
      this.#isWanted = false
    }
    if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#openContainer(byte)
    else {
      if (byte === QUOTE) this.#skipString()
      else if (byte === MINUS || isDigit(byte)) this.#skipNumber()
      else this.#skipLiteral()
      this.#endValue()
    }
    if (isRoom) items.push(byte === QUOTE ? this.#textFrom(start) : null)
  }

  #openContainer(byte: number): void {
    if (this.#depth === 0 && byte === OPEN_OBJECT) this.document = {}
    if (this.#depth === this.#open.length) {
      const longer = new Uint8Array(2 * this.#depth)
      longer.set(this.#open)
      this.#open = longer
    }
    this.#open[this.#depth++] = byte === OPEN_OBJECT ? 1 : 0
    this.#expected = byte === OPEN_OBJECT ? 'name or }' : 'value or ]'
    this.#at++
  }

  #close(): void {
    if (this.#depth === 2) this.#items = undefined
    this.#depth--
    this.#at++
    this.#endValue()
  }

  #endValue(): void {
    this.#expected = this.#depth === 0 ? 'end' : 'comma or close'
  }

  #skipString(): void {
    const bytes = this.#bytes
    if (bytes[this.#at] !== QUOTE) throw new AppError('invalid_json')
    let at = this.#at + 1
    for (;;) {
      const byte = bytes[at]
      if (byte === QUOTE) break
      if (byte === BACKSLASH) at = this.#afterEscape(at + 1)
      else if (byte === undefined || byte < SPACE) throw new AppError('invalid_json')
      else at++
    }
    this.#at = at + 1
  }

  #afterEscape(at: number): number {
    const byte = this.#bytes[at] ?? 0
    if (SHORT_ESCAPES.has(byte)) return at + 1
    if (byte !== LETTER_U) throw new AppError('invalid_json')
    for (let digit = at + 1; digit <= at + 4; digit++) {
      if (!isHexDigit(this.#bytes[digit])) throw new AppError('invalid_json')
    }
    return at + 5
  }

  #skipNumber(): void {
    if (this.#bytes[this.#at] === MINUS) this.#at++
    if (this.#bytes[this.#at] === ZERO) this.#at++
    else this.#skipDigits()
    if (this.#bytes[this.#at] === POINT) {
      this.#at++
      this.#skipDigits()
    }
    const exponent = this.#bytes[this.#at]
    if (exponent === 0x65 || exponent === 0x45) {
      const sign = this.#bytes[++this.#at]
      if (sign === PLUS || sign === MINUS) this.#at++
      this.#skipDigits()
    }
  }

  #skipDigits(): void {
    if (!isDigit(this.#bytes[this.#at])) throw new AppError('invalid_json')
    while (isDigit(this.#bytes[this.#at])) this.#at++
  }

  #skipLiteral(): void {
    const found = LITERALS.find((word) =>
      word.every((byte, offset) => this.#bytes[this.#at + offset] === byte),
    )
    if (!found) throw new AppError('invalid_json')
    this.#at += found.length
  }

  /** The string from its opening quote to where the scanner is. */
  #textFrom(start: number): string {
    const token = this.#bytes.subarray(start, this.#at)
    if (token.includes(BACKSLASH)) return JSON.parse(decode(token))
    return decode(token.subarray(1, -1))
  }
}

/** A byte order mark inside the document belongs to its text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const decode = (bytes: Uint8Array): string => decoder.decode(bytes)

const isSpace = (byte: number | undefined): boolean =>
  byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= ZERO && byte <= NINE

const isHexDigit = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
