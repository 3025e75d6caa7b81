/** Maximum length of the head of a response, and of the line with the size of a chunk. */
const HEAD_MAX = 64 * 1024
const LINE_MAX = 32

/** `unknown`: only the end of the connection ends the response. */
export type Progress = 'more' | 'done' | 'unknown'

/** Finds the end of one response of this program's own server (RFC 9112, section 6). */
export class ResponseEnd {
  readonly #hasBody: boolean
  /** The head until it is complete, then the line with the size of the next chunk. */
  #text = ''
  #state: 'head' | 'length' | 'chunks' | 'last chunk' | 'unknown' = 'head'
  /** Bytes until the end of the body, or of the chunk with its line break. */
  #left = 0

  /** `method`: of the request. */
  constructor(method: string) {
    this.#hasBody = method !== 'HEAD'
  }

  /** Feeds the next bytes of the connection. Bytes after the end make the progress `unknown`. */
  push(bytes: Buffer): Progress {
    let at = 0
    if (this.#state === 'head') {
      const before = this.#text.length
      this.#text += bytes.toString('latin1')
      const end = this.#text.indexOf('\r\n\r\n')
      if (end < 0) return this.#text.length <= HEAD_MAX ? 'more' : 'unknown'
      this.#readHead(this.#text.slice(0, end + 2))
      at = end + 4 - before
      this.#text = ''
    }
    if (this.#state === 'length') {
      this.#left -= bytes.length - at
      if (this.#left < 0) return 'unknown'
      return this.#left === 0 ? 'done' : 'more'
    }
    return this.#state === 'unknown' ? 'unknown' : this.#readChunks(bytes, at)
  }

  #readHead(head: string): void {
    const status = Number(head.slice(9, 12))
    const length = /\ncontent-length: *(\d+)\r/i.exec(head)?.[1]
    if (status < 200 || /\nconnection: *close/i.test(head)) this.#state = 'unknown'
    else if (!this.#hasBody || status === 204 || status === 304) this.#state = 'length'
    else if (length !== undefined) {
      this.#state = 'length'
      this.#left = Number(length)
    } else this.#state = /\ntransfer-encoding: *chunked\r/i.test(head) ? 'chunks' : 'unknown'
  }

  #readChunks(bytes: Buffer, from: number): Progress {
    let at = from
    while (at < bytes.length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at)
        this.#left -= taken
        at += taken
        continue
      }
      const end = bytes.indexOf('\n', at)
      this.#text += bytes.toString('latin1', at, end < 0 ? bytes.length : end + 1)
      if (this.#text.length > LINE_MAX) return 'unknown'
      if (end < 0) return 'more'
      at = end + 1
      const line = this.#text
      this.#text = ''
      if (this.#state === 'last chunk') {
        return line === '\r\n' && at === bytes.length ? 'done' : 'unknown'
      }
      const size = /^([0-9a-f]+)\r\n$/i.exec(line)?.[1]
      if (size === undefined) return 'unknown'
      this.#left = Number.parseInt(size, 16)
      if (this.#left === 0) this.#state = 'last chunk'
      else this.#left += 2
    }
    return 'more'
  }
}
