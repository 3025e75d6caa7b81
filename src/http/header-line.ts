/**
 * HOT PATH. One header of a Headers object that serves many answers in turn: set only when its
 * value differs from the last answer's, which for most headers it seldom does.
 */
export class HeaderLine {
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
