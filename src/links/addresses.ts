import type { Code } from '../lib/code.ts'

/** The public addresses of a code. */
export class Addresses {
  readonly #baseUrl: string
  readonly #cdnUrl: string

  constructor({ baseUrl, cdnUrl }: { baseUrl: string; cdnUrl: string }) {
    this.#baseUrl = baseUrl
    this.#cdnUrl = cdnUrl
  }

  short = (code: Code): string => `${this.#baseUrl}/${code}`
  qr = (code: Code): string => `${this.#baseUrl}/qr/${code}`
  qrStorage = (code: Code): string => `${this.#cdnUrl}/qr/${code}.png`
}
