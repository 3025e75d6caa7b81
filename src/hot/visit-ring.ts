import type { Client } from './client-address.ts'

/**
 * The heads of requests, from one thread that answers redirects to the thread that classifies them:
 * a ring in shared memory with one writer and one reader, without locks. It is the only place where
 * a head and an address are kept, for about a tenth of a second: see docs/privacy.md.
 */

/** Powers of two. */
export const RING_SLOTS = 2048
const SLOT_BYTES = 1024

/** Words of the ring before its slots. Each is written by one thread. */
const WRITTEN = 0
const SKIPPED = 1
const READ = 16
/** One in 2^shift hits is kept. */
const SHIFT = 17
const HEADER_BYTES = 128

/** Words of a slot; the head follows them. */
const LINK = 0
const WEIGHT = 1
const KEY_HIGH = 2
const KEY_LOW = 3
/** The length of the head; the highest bit tells whether a trusted proxy forwarded the request. */
const LENGTH = 4
const SLOT_WORDS = 6
const HEAD_MAX = SLOT_BYTES - 4 * SLOT_WORDS
const FORWARDED = 2 ** 31

/** The highest shift: one in 64 hits is kept. */
export const SHIFT_MAX = 6

/** Longest part of one header or of the query in the head of a long request. */
const PART_MAX = 220

/** A redirect as the thread that answered it recorded it. */
export interface RecordedVisit {
  linkId: number
  /** How many hits it stands for. */
  weight: number
  client: Client
  /** The query string, without its question mark. */
  query: string
  /** The first header of each wanted name, in lower case. */
  headers: ReadonlyMap<string, string>
}

export interface VisitRequest {
  readonly query: string
  /** The request as it was received, where that is known. */
  readonly head?: string
  get(name: string): string | null
}

export const allocateVisitRing = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEADER_BYTES + RING_SLOTS * SLOT_BYTES)

function viewsOf(memory: SharedArrayBuffer) {
  return {
    words: new Int32Array(memory, 0, HEADER_BYTES / 4),
    slots: new Uint32Array(memory, HEADER_BYTES),
    bytes: Buffer.from(memory, HEADER_BYTES, RING_SLOTS * SLOT_BYTES),
  }
}

/** The writing side: one for each ring. It parses nothing: decision 034. */
export class VisitRecorder {
  readonly #words: Int32Array
  readonly #slots: Uint32Array
  readonly #bytes: Buffer
  readonly #headers: readonly string[]

  /** `headers`: the names that the reader looks for, in lower case. */
  constructor(memory: SharedArrayBuffer, headers: readonly string[]) {
    const { words, slots, bytes } = viewsOf(memory)
    this.#words = words
    this.#slots = slots
    this.#bytes = bytes
    this.#headers = headers
  }

  /**
   * HOT PATH. Copies the head of a counted redirect, and parses nothing. While the ring is full,
   * the redirect stays without details.
   */
  record(linkId: number, client: Client, request: VisitRequest): void {
    const words = this.#words
    const weight = 1 << (words[SHIFT] as number)
    // Random: which hits are kept must not follow a pattern of the requests.
    if (weight > 1 && Math.random() * weight >= 1) return
    const written = words[WRITTEN] as number
    if (((written - Atomics.load(words, READ)) | 0) >= RING_SLOTS) {
      words[SKIPPED] = ((words[SKIPPED] as number) + weight) | 0
      return
    }
    const slot = written & (RING_SLOTS - 1)
    const at = slot * (SLOT_BYTES / 4)
    const isShort = request.head !== undefined && request.head.length <= HEAD_MAX
    const head = isShort ? (request.head as string) : this.#shorten(request)
    const length = this.#bytes.write(head, slot * SLOT_BYTES + 4 * SLOT_WORDS, HEAD_MAX, 'latin1')
    const slots = this.#slots
    slots[at + LINK] = linkId
    slots[at + WEIGHT] = weight
    slots[at + KEY_HIGH] = client.keyHigh
    slots[at + KEY_LOW] = client.keyLow
    slots[at + LENGTH] = client.isForwarded ? length + FORWARDED : length
    Atomics.store(words, WRITTEN, (written + 1) | 0)
  }

  /** The parts of a long head that the reader looks for: it may have many cookies. */
  #shorten(request: VisitRequest): string {
    let head = `GET /?${request.query.slice(0, PART_MAX)} HTTP/1.1\r\n`
    for (const name of this.#headers) {
      const value = request.get(name)
      if (value !== null) head += `${name}: ${value.slice(0, PART_MAX)}\r\n`
    }
    return head
  }
}

const LINE_FEED = 10
const SPACE = 32
const COLON = 58
const QUESTION_MARK = 63

/** The reading side: one for each ring. */
export class VisitReader {
  readonly #words: Int32Array
  readonly #slots: Uint32Array
  readonly #bytes: Buffer
  readonly #headers: readonly string[]

  /** `headers`: as those of the recorder. */
  constructor(memory: SharedArrayBuffer, headers: readonly string[]) {
    const { words, slots, bytes } = viewsOf(memory)
    this.#words = words
    this.#slots = slots
    this.#bytes = bytes
    this.#headers = headers
  }

  /** Hits that found the ring full, since the start, modulo 2^32. */
  get skipped(): number {
    return (this.#words[SKIPPED] as number) >>> 0
  }

  set shift(shift: number) {
    Atomics.store(this.#words, SHIFT, shift)
  }

  /** The visits that wait, the oldest first. They are erased from the ring. */
  drain(): RecordedVisit[] {
    const words = this.#words
    const read = words[READ] as number
    const waiting = (Atomics.load(words, WRITTEN) - read) | 0
    return Array.from({ length: waiting }, (_, n) => {
      const visit = this.#readSlot((read + n) & (RING_SLOTS - 1))
      Atomics.store(words, READ, (read + n + 1) | 0)
      return visit
    })
  }

  #readSlot(slot: number): RecordedVisit {
    const at = slot * (SLOT_BYTES / 4)
    const slots = this.#slots
    const lengthAndFlag = slots[at + LENGTH] as number
    const isForwarded = lengthAndFlag >= FORWARDED
    const start = slot * SLOT_BYTES
    const headStart = start + 4 * SLOT_WORDS
    const end = headStart + (isForwarded ? lengthAndFlag - FORWARDED : lengthAndFlag)
    const head = this.#bytes.subarray(headStart, end)
    const visit = {
      linkId: slots[at + LINK] as number,
      weight: slots[at + WEIGHT] as number,
      client: {
        keyHigh: slots[at + KEY_HIGH] as number,
        keyLow: slots[at + KEY_LOW] as number,
        isForwarded,
      },
      query: queryIn(head),
      headers: this.#headersIn(head),
    }
    this.#bytes.fill(0, start, end)
    return visit
  }

  /** Decodes wanted headers only: a string with a cookie would stay in memory for a while. */
  #headersIn(head: Buffer): Map<string, string> {
    const headers = new Map<string, string>()
    for (let at = head.indexOf(LINE_FEED) + 1; at > 0; at = head.indexOf(LINE_FEED, at) + 1) {
      const name = this.#headers.find((one) => isHeader(head, at, one))
      if (name === undefined || headers.has(name)) continue
      const end = head.indexOf(LINE_FEED, at)
      const value = head.toString('latin1', at + name.length + 1, end < 0 ? head.length : end)
      headers.set(name, value.trim())
    }
    return headers
  }
}

function isHeader(head: Buffer, at: number, name: string): boolean {
  const colon = at + name.length
  return head[colon] === COLON && head.toString('latin1', at, colon).toLowerCase() === name
}

function queryIn(head: Buffer): string {
  const start = head.indexOf(QUESTION_MARK) + 1
  const end = head.indexOf(SPACE, head.indexOf(SPACE) + 1)
  return start > 0 && start < end ? head.toString('latin1', start, end) : ''
}
