const HEAD_MAX = 64 * 1024
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const COLON = 58
/** The bit that distinguishes small ASCII letters from capital ones; a dash has it set. */
const SMALL = 0x20

type Phase = 'head' | 'body' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer'

/**
 * Reads HTTP/1.1 responses off one keep-alive connection, one at a time (no pipelining). It keeps
 * the status and the headers asked for and counts the body's bytes without storing them. Bodies
 * have a length or are chunked: a response that only ends with the connection is an error, as is
 * anything that is not HTTP/1.1, an interim (1xx) response or bytes after the end.
 */
export class ResponseScanner {
  readonly #names: readonly Buffer[]
  readonly #values: (string | undefined)[]
  #phase: Phase = 'head'
  #pending: Buffer | undefined
  #bodyLeft = 0
  #withoutBody = false
  /** Status of the last response whose head has arrived. */
  status = 0
  /** Body bytes of the last response, chunk framing left out. */
  bodyBytes = 0

  /** `headers`: names of the headers to keep, in any letter case. */
  constructor(headers: readonly string[]) {
    this.#names = ['content-length', 'transfer-encoding', 'connection', ...headers].map((name) =>
      Buffer.from(name.toLowerCase(), 'latin1'),
    )
    this.#values = this.#names.map(() => undefined)
  }

  /** The value of the `index`-th header asked for; undefined where the response had none. */
  header(index: number): string | undefined {
    return this.#values[index + 3]
  }

  /** Whether the server closes the connection after this response. */
  get closes(): boolean {
    return this.#values[2]?.toLowerCase() === 'close'
  }

  /** Call it before the response to a HEAD: it has no body, even if its headers have a length. */
  expectNoBody(): void {
    this.#withoutBody = true
  }

  /** Feeds the next bytes; true when they complete a response. Throws Error on malformed bytes. */
  push(chunk: Buffer): boolean {
    const bytes = this.#pending ? Buffer.concat([this.#pending, chunk]) : chunk
    this.#pending = undefined
    let at = 0
    while (true) {
      const next = this.#advance(bytes, at)
      if (next === -1) {
        // The socket may reuse its buffer after the callback.
        if (at < bytes.length) this.#pending = Buffer.from(bytes.subarray(at))
        if ((this.#pending?.length ?? 0) > HEAD_MAX)
          throw new Error('the response head is too long')
        return false
      }
      at = next
      if (this.#phase === 'head') {
        if (at < bytes.length) throw new Error('bytes after the end of the response')
        return true
      }
    }
  }

  /** Reads one piece from `at`: its end, or -1 where more bytes are needed. Phase `head` = done. */
  #advance(bytes: Buffer, at: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#readHead(bytes, at)
      case 'body':
      case 'chunk':
        return this.#skipBody(bytes, at)
      default:
        return this.#readChunkLine(bytes, at)
    }
  }

  #readHead(bytes: Buffer, at: number): number {
    this.#values.fill(undefined)
    let lineStart = at
    while (true) {
      const lineEnd = bytes.indexOf(LINE_FEED, lineStart)
      if (lineEnd === -1) return -1
      const end = bytes[lineEnd - 1] === CARRIAGE_RETURN ? lineEnd - 1 : lineEnd
      if (lineStart === at) this.status = statusOf(bytes, at, end)
      else if (end === lineStart) return this.#beginBody(lineEnd + 1)
      else this.#keepHeader(bytes, lineStart, end)
      lineStart = lineEnd + 1
    }
  }

  #keepHeader(bytes: Buffer, start: number, end: number): void {
    for (let i = 0; i < this.#names.length; i++) {
      const name = this.#names[i]
      if (!name || bytes[start + name.length] !== COLON || !hasName(bytes, start, name)) continue
      this.#values[i] = bytes.toString('latin1', start + name.length + 1, end).trim()
      return
    }
  }

  #beginBody(at: number): number {
    const [length, encoding] = this.#values
    const empty = this.#withoutBody || this.status === 204 || this.status === 304
    this.#withoutBody = false
    this.bodyBytes = 0
    if (empty) return at
    if (encoding?.toLowerCase() === 'chunked') {
      this.#phase = 'chunk-size'
      return at
    }
    if (length === undefined || !/^\d+$/.test(length)) {
      throw new Error(`a ${this.status} response without Content-Length`)
    }
    this.#bodyLeft = Number(length)
    this.#phase = this.#bodyLeft === 0 ? 'head' : 'body'
    return at
  }

  #skipBody(bytes: Buffer, at: number): number {
    const skipped = Math.min(this.#bodyLeft, bytes.length - at)
    if (skipped === 0) return -1
    this.#bodyLeft -= skipped
    this.bodyBytes += skipped
    if (this.#bodyLeft === 0) this.#phase = this.#phase === 'body' ? 'head' : 'chunk-end'
    return at + skipped
  }

  #readChunkLine(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(LINE_FEED, at)
    if (lineEnd === -1) return -1
    const line = bytes.toString('latin1', at, lineEnd).trimEnd()
    if (this.#phase === 'chunk-size') {
      if (!/^[0-9a-f]+/i.test(line)) throw new Error('a chunk without its size')
      this.#bodyLeft = Number.parseInt(line, 16)
      this.#phase = this.#bodyLeft === 0 ? 'trailer' : 'chunk'
    } else if (this.#phase === 'chunk-end') {
      this.#phase = 'chunk-size'
    } else if (line === '') {
      this.#phase = 'head'
    }
    return lineEnd + 1
  }
}

function statusOf(bytes: Buffer, start: number, end: number): number {
  const line = bytes.toString('latin1', start, Math.min(end, start + 12))
  const status = Number(line.slice(9))
  if (!/^HTTP\/1\.1 \d{3}$/.test(line)) throw new Error('the answer is not HTTP/1.1')
  if (status < 200) throw new Error(`an interim ${status} response`)
  return status
}

function hasName(bytes: Buffer, start: number, name: Buffer): boolean {
  for (let i = 0; i < name.length; i++) {
    if (((bytes[start + i] ?? SPACE) | SMALL) !== name[i]) return false
  }
  return true
}
