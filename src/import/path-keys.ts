const EXACT_BITS = 20n
const EXACT_MASK = (1n << EXACT_BITS) - 1n

/**
 * The paths of all rows as 8 bytes each, for the question which of them differ in letter case only.
 * A few bits of each are a hash of the exact path: of two paths that are taken for one, neither
 * becomes an alias, and the second is reported as there already.
 */
export class PathKeys {
  #keys = new BigUint64Array(1024)
  #count = 0
  readonly #clashing = new Set<bigint>()
  readonly #repeated = new Set<bigint>()

  /** Paths on two domains clash too: codes are the same on all of them. */
  add(path: string, domain = ''): void {
    if (this.#count === this.#keys.length) {
      const larger = new BigUint64Array(2 * this.#count)
      larger.set(this.#keys)
      this.#keys = larger
    }
    this.#keys[this.#count++] = keyOf(path, domain)
  }

  /** All paths are there. */
  close(): void {
    const keys = this.#keys.subarray(0, this.#count).sort()
    for (let i = 1; i < keys.length; i++) {
      const [key, before] = [keys[i] as bigint, keys[i - 1] as bigint]
      if (key === before) this.#repeated.add(key)
      else if (key >> EXACT_BITS === before >> EXACT_BITS) this.#clashing.add(key >> EXACT_BITS)
    }
    this.#keys = new BigUint64Array(1)
  }

  /** Another path differs in letter case or domain only. */
  clashes = (path: string): boolean => this.#clashing.has(keyOf(path) >> EXACT_BITS)
  /** Another row has exactly the path. */
  isRepeated = (path: string): boolean => this.#repeated.has(keyOf(path))
}

const keyOf = (path: string, domain = ''): bigint =>
  (Bun.hash.xxHash64(path.toLowerCase().toUpperCase()) & ~EXACT_MASK) |
  (Bun.hash.xxHash64(domain + path, 1n) & EXACT_MASK)
