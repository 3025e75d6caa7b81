/** Numbers as varints (LEB128): seven bits a byte, the lowest first. */

/** `value`: an integer from 0 to 2^53 - 1. */
export function pushVarint(out: number[], value: number): void {
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push((rest % 0x80) + 0x80)
  out.push(rest)
}

/** Reads varints, and bytes between them. Throws RangeError beyond the end. */
export class VarintReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  next(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined || scale > 2 ** 49) throw new RangeError('a number is incomplete')
      value += (byte % 0x80) * scale
      if (byte < 0x80) return value
    }
  }

  bytes(length: number): Uint8Array {
    const piece = this.#bytes.subarray(this.#at, this.#at + length)
    if (piece.length < length) throw new RangeError('a text is incomplete')
    this.#at += length
    return piece
  }
}
