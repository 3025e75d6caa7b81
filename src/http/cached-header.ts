/**
 * HOT PATH. One header of a Headers object that many responses share: set only when its value
 * differs from the one before, which is rare for most headers.
 */
export class CachedHeader {
  readonly #headers: Headers
  readonly #name: string
  #value: string | number = ''

  constructor(headers: Headers, name: string) {
    this.#headers = headers
    this.#name = name
  }

  set(value: string | number): void {
    if (value === this.#value) return
    this.#headers.set(this.#name, String(value))
    this.#value = value
  }
}
