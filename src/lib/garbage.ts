/** Bytes of large texts and arrays after which their memory is worth a collection. */
const GARBAGE_BYTES = 12 * 1024 * 1024

/**
 * Collects the garbage of a thread in which many bytes pass. The engine does not count what lies
 * outside its heap as it should, and waits until the heap has tripled. A collection takes about
 * 16 ms on the control thread.
 */
export class Garbage {
  #bytes = 0

  /** So many bytes have been allocated outside the heap, and soon nobody needs them. */
  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes < GARBAGE_BYTES) return
    this.#bytes = 0
    Bun.gc(true)
  }
}
