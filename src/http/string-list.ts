import { Tokenizer, TokenType } from '@streamparser/json'
import { AppError } from '../errors.ts'
import { batchSlices } from '../lib/time-slices.ts'

/**
 * Reads one list of strings from a large JSON document without building the rest of the document in
 * memory. With many small values or distinct names, `JSON.parse` blocks its thread for up to 150 ms
 * per MiB and takes up to forty times the memory of the text. This reader works in slices, and
 * keeps only the strings of the list.
 */

/** Bytes read before other work of the thread can run. */
const SLICE_BYTES = 16 * 1024
/** Longer than any valid URL. */
const STRING_BUFFER_BYTES = 32 * 1024

export type StringListDocument = Record<string, (string | null)[] | null> | null

/**
 * The document as `JSON.parse` would return it, reduced: an object has only the member `field`, a
 * list in it only the first `itemsMax` items, and every value except a string is null. The last of
 * several members with the same name counts. `bytes` must be UTF-8. Throws `invalid_json`.
 */
export async function readStringList(
  bytes: Uint8Array,
  field: string,
  itemsMax: number,
): Promise<StringListDocument> {
  const reader = new ListReader(field, itemsMax)
  const tokenizer = new Tokenizer({ stringBufferSize: STRING_BUFFER_BYTES, numberBufferSize: 64 })
  tokenizer.onToken = ({ token, value, offset }) => {
    // The tokenizer drops a byte order mark at the start of a string.
    const hasMark = token === STRING && startsWithMark(bytes, offset + 1)
    reader.take(token, hasMark ? `\ufeff${value}` : value)
  }
  // It also accepts one at the start of the document, where JSON has none.
  if (startsWithMark(bytes, 0)) throw new AppError('invalid_json')
  try {
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      if (at > 0) await batchSlices.next()
      tokenizer.write(bytes.subarray(at, at + SLICE_BYTES))
    }
    tokenizer.end()
  } catch {
    throw new AppError('invalid_json')
  }
  return reader.end()
}

const startsWithMark = (bytes: Uint8Array, at: number): boolean =>
  bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf

const { LEFT_BRACE, RIGHT_BRACE, LEFT_BRACKET, RIGHT_BRACKET, COLON, COMMA, STRING } = TokenType
const SCALARS: readonly TokenType[] = [
  STRING,
  TokenType.NUMBER,
  TokenType.TRUE,
  TokenType.FALSE,
  TokenType.NULL,
]

/** What the grammar allows next. */
type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | 'colon' | 'comma or close' | 'end'

/** Checks the order of the tokens, and collects the items of the list. */
class ListReader {
  #document: StringListDocument = null
  readonly #field: string
  readonly #itemsMax: number
  #expected: Expected = 'value'
  /** The token that closes each open container. */
  readonly #closings: TokenType[] = []
  /** The next value belongs to the member `field` of the document. */
  #isWanted = false
  /** The list being collected is open. */
  #isCollecting = false
  readonly #items: (string | null)[] = []

  constructor(field: string, itemsMax: number) {
    this.#field = field
    this.#itemsMax = itemsMax
  }

  take(token: TokenType, value: unknown): void {
    const expected = this.#expected
    const closing = this.#closings.at(-1)
    if (token === closing && expected.includes(' or ')) this.#close()
    else if (expected === 'value' || expected === 'value or ]') this.#beginValue(token, value)
    else if (expected === 'comma or close' && token === COMMA) {
      this.#expected = closing === RIGHT_BRACE ? 'name' : 'value'
    } else if (expected === 'colon' && token === COLON) this.#expected = 'value'
    else if ((expected === 'name' || expected === 'name or }') && token === STRING) {
      this.#isWanted = this.#closings.length === 1 && value === this.#field
      this.#expected = 'colon'
    } else throw new AppError('invalid_json')
  }

  /** The document; throws if it is incomplete. */
  end(): StringListDocument {
    if (this.#expected !== 'end') throw new AppError('invalid_json')
    return this.#document
  }

  #beginValue(token: TokenType, value: unknown): void {
    const depth = this.#closings.length
    if (this.#isWanted && this.#document) {
      this.#isCollecting = token === LEFT_BRACKET
      this.#items.length = 0
      this.#document[this.#field] = this.#isCollecting ? this.#items : null
      this.#isWanted = false
    } else if (this.#isCollecting && depth === 2 && this.#items.length < this.#itemsMax) {
      // Two open containers, the document and the list: the value is not nested in an item.
      this.#items.push(token === STRING ? (value as string) : null)
    }
    if (token === LEFT_BRACE || token === LEFT_BRACKET) {
      if (depth === 0 && token === LEFT_BRACE) this.#document = {}
      this.#closings.push(token === LEFT_BRACE ? RIGHT_BRACE : RIGHT_BRACKET)
      this.#expected = token === LEFT_BRACE ? 'name or }' : 'value or ]'
    } else if (SCALARS.includes(token)) this.#endValue()
    else throw new AppError('invalid_json')
  }

  #close(): void {
    if (this.#closings.length === 2) this.#isCollecting = false
    this.#closings.pop()
    this.#endValue()
  }

  #endValue(): void {
    this.#expected = this.#closings.length === 0 ? 'end' : 'comma or close'
  }
}
