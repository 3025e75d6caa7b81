import { readFileSync } from 'node:fs'

/**
 * Replaced in a path or body by the request's number, with as many digits as this has characters,
 * or by its text if the target has texts.
 */
export const NUMBER_MARK = '{number}'
/** The length of a generated code, so that the texts can be codes. */
export const TEXT_LENGTH = NUMBER_MARK.length

/** A request that a generator repeats, and its expected response. */
export interface Target {
  /** Default: `GET`. */
  method?: string
  /** May contain NUMBER_MARK once, in path or body: then each request is different. */
  path: string
  headers?: Record<string, string>
  body?: string
  /**
   * A file of concatenated texts of TEXT_LENGTH ASCII characters each: request `n` gets the `n`-th
   * of them instead of NUMBER_MARK, starting again after the last.
   */
  textsFile?: string
  /** The expected status. */
  status: number
  /** The expected `Location`; absent: not checked. */
  location?: string
  /** The expected length of the body; absent: not checked. */
  bodyBytes?: number
}

/** The bytes of a request, built once; its number or text is written into them. */
export class RequestBytes {
  readonly #bytes: Buffer
  readonly #mark: number
  readonly #texts: Buffer | undefined

  constructor(target: Target, host: string) {
    const { method = 'GET', path, headers = {}, body } = target
    const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`]
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
    if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
    this.#bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)
    this.#mark = this.#bytes.indexOf(NUMBER_MARK)
    this.#texts = target.textsFile === undefined ? undefined : readFileSync(target.textsFile)
  }

  /** Including NUMBER_MARK. */
  get marked(): Buffer {
    return this.#bytes
  }

  /** The bytes of request `number`; valid until the next call. */
  numbered(number: number): Buffer {
    if (this.#mark === -1) return this.#bytes
    if (this.#texts) {
      const from = (number % (this.#texts.length / TEXT_LENGTH)) * TEXT_LENGTH
      this.#texts.copy(this.#bytes, this.#mark, from, from + TEXT_LENGTH)
    } else {
      const digits = String(number).padStart(TEXT_LENGTH, '0').slice(-TEXT_LENGTH)
      this.#bytes.write(digits, this.#mark, 'latin1')
    }
    return this.#bytes
  }
}
