/** A cache line, so that threads that use different arrays do not slow one another down. */
const ALIGNMENT_BYTES = 64

/**
 * Arrays one after the other in shared memory, in the order in which they are requested. Without a
 * buffer they are empty, and `bytes` is the memory that they need.
 */
export class SharedArrays {
  readonly #buffer: SharedArrayBuffer | undefined
  #bytes: number

  /** `bytes`: where the first array begins. */
  constructor(buffer?: SharedArrayBuffer, bytes = 0) {
    this.#buffer = buffer
    this.#bytes = bytes
  }

  /** Where the next array begins. */
  get bytes(): number {
    return this.#bytes
  }

  int32(length: number): Int32Array {
    const at = this.#reserve(4 * length)
    return this.#buffer ? new Int32Array(this.#buffer, at, length) : new Int32Array()
  }

  uint16(length: number): Uint16Array {
    const at = this.#reserve(2 * length)
    return this.#buffer ? new Uint16Array(this.#buffer, at, length) : new Uint16Array()
  }

  float64(length: number): Float64Array {
    const at = this.#reserve(8 * length)
    return this.#buffer ? new Float64Array(this.#buffer, at, length) : new Float64Array()
  }

  /** All bytes since `from`, an earlier value of `bytes`. */
  since(from: number): Uint8Array {
    const length = this.#bytes - from
    return this.#buffer ? new Uint8Array(this.#buffer, from, length) : new Uint8Array()
  }

  #reserve(bytes: number): number {
    const at = this.#bytes
    this.#bytes = at + Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return at
  }
}
