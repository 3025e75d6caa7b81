import { AppError } from '../errors.ts'
import { batchSlices } from '../lib/time-slices.ts'

/**
 * Reads one list of strings from a large JSON document without building the rest of the document in
 * memory. With many small values or distinct names, `JSON.parse` blocks its thread for up to 150 ms
 * per MiB and takes up to forty times the memory of the text. This reader takes about 20 ms per
 * MiB, in slices, and keeps only the strings of the list.
 */

/** Bytes scanned before other work of the thread can run: less than half a millisecond. */
const SLICE_BYTES = 16 * 1024

export type StringListDocument = Record<string, (string | null)[] | null> | null

/**
 * The document as `JSON.parse` would return it, reduced: an object has only the member `field` and
 * the first other one, whose value is null; a list in `field` has only the first `itemsMax` items,
 * and every value in it except a string is null. The last of several members with the same name
 * counts. `bytes` must be UTF-8, and `field` letters. Throws
 * `invalid_json`.
 */
export async function readStringList(
  bytes: Uint8Array,
  field: string,
  itemsMax: number,
): Promise<StringListDocument> {
  const scanner = new Scanner(bytes, field, itemsMax)
  while (!scanner.scan(SLICE_BYTES)) await batchSlices.next()
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
type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | 'colon' | 'comma or close' | 'end'

const NOT_IN_STRING = -1

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
  #hasOther = false
  /** The next value belongs to the member `field` of the document. */
  #isWanted = false
  /** The list being collected is open. */
  #isCollecting = false
  readonly #items: (string | null)[] = []
  /** The opening quote of the string that is being scanned. */
  #stringStart = NOT_IN_STRING

  constructor(bytes: Uint8Array, field: string, itemsMax: number) {
    this.#bytes = bytes
    this.#field = field
    this.#itemsMax = itemsMax
  }

  /** Scans about `bytesMax` bytes. Returns whether the document is complete. */
  scan(bytesMax: number): boolean {
    const until = this.#at + bytesMax
    while (this.#at < until) {
      if (this.#stringStart !== NOT_IN_STRING) {
        this.#scanString(until)
        continue
      }
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
    const expected = this.#expected
    if (expected === 'value or ]' && byte === CLOSE_LIST) this.#close()
    else if (expected === 'value' || expected === 'value or ]') this.#beginValue(byte)
    else if (expected === 'name or }' && byte === CLOSE_OBJECT) this.#close()
    else if ((expected === 'name' || expected === 'name or }') && byte === QUOTE) {
      this.#expected = 'name'
      this.#stringStart = this.#at++
    } else if (expected === 'colon' && byte === COLON) {
      this.#at++
      this.#expected = 'value'
    } else if (expected === 'comma or close' && byte === COMMA) {
      this.#at++
      this.#expected = isInObject ? 'name' : 'value'
    } else if (expected === 'comma or close' && byte === (isInObject ? CLOSE_OBJECT : CLOSE_LIST)) {
      this.#close()
    } else throw new AppError('invalid_json')
  }

  #beginValue(byte: number): void {
    if (this.#isWanted && this.document) {
      this.#isCollecting = byte === OPEN_LIST
      this.#items.length = 0
      this.document[this.#field] = this.#isCollecting ? this.#items : null
      this.#isWanted = false
    } else if (byte !== QUOTE && this.#isItem()) this.#items.push(null)
    this.#expected = 'value'
    if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#openContainer(byte)
    else if (byte === QUOTE) this.#stringStart = this.#at++
    else {
      if (byte === MINUS || isDigit(byte)) this.#skipNumber()
      else this.#skipLiteral()
      this.#endValue()
    }
  }

  /** Whether the value here is an item of the wanted list, and the list has room for it. */
  #isItem(): boolean {
    // Two open containers, the document and the list: the value is not nested in an item.
    return this.#isCollecting && this.#depth === 2 && this.#items.length < this.#itemsMax
  }

  /** Scans up to the closing quote, or approximately up to `until`. */
  #scanString(until: number): void {
    const bytes = this.#bytes
    let at = this.#at
    while (at < until) {
      const byte = bytes[at]
      if (byte === QUOTE) {
        this.#at = at + 1
        this.#endString()
        return
      }
      if (byte === BACKSLASH) at = this.#afterEscape(at + 1)
      else if (byte === undefined || byte < SPACE) throw new AppError('invalid_json')
      else at++
    }
    this.#at = at
  }

  #endString(): void {
    const start = this.#stringStart
    this.#stringStart = NOT_IN_STRING
    if (this.#expected === 'name') {
      this.#isWanted = this.#depth === 1 && this.#isField(start)
      if (this.document && this.#depth === 1 && !this.#isWanted && !this.#hasOther) {
        this.document[this.#textFrom(start)] = null
        this.#hasOther = true
      }
      this.#expected = 'colon'
    } else {
      if (this.#isItem()) this.#items.push(this.#textFrom(start))
      this.#endValue()
    }
  }

  /** Whether the string from `start` to here is the name `field`. Allocates nothing. */
  #isField(start: number): boolean {
    let at = start + 1
    for (let n = 0; n < this.#field.length; n++) {
      const isEscaped = this.#bytes[at] === BACKSLASH && this.#bytes[at + 1] === LETTER_U
      const unit = isEscaped ? this.#escapedUnit(at + 2) : this.#bytes[at]
      if (unit !== this.#field.charCodeAt(n)) return false
      at += isEscaped ? 6 : 1
    }
    return at === this.#at - 1
  }

  #escapedUnit(at: number): number {
    let unit = 0
    for (let digit = at; digit < at + 4; digit++) {
      const byte = this.#bytes[digit] ?? 0
      unit = 16 * unit + (isDigit(byte) ? byte - ZERO : (byte | 0x20) - 0x57)
    }
    return unit
  }

  #openContainer(byte: number): void {
    if (this.#depth === 0 && byte === OPEN_OBJECT) this.document = Object.create(null)
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
    if (this.#depth === 2) this.#isCollecting = false
    this.#depth--
    this.#at++
    this.#endValue()
  }

  #endValue(): void {
    this.#expected = this.#depth === 0 ? 'end' : 'comma or close'
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

  /** The string from its opening quote to the position of the scanner. */
  #textFrom(start: number): string {
    const token = this.#bytes.subarray(start, this.#at)
    if (token.includes(BACKSLASH)) return JSON.parse(decode(token))
    return decode(token.subarray(1, -1))
  }
}

/** A byte order mark inside the document is part of its text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const decode = (bytes: Uint8Array): string => decoder.decode(bytes)

const isSpace = (byte: number | undefined): boolean =>
  byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= ZERO && byte <= NINE

const isHexDigit = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
