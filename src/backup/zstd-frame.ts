/** The end of a zstd frame (RFC 8878, 3.1.1), which the decompressor does not require. */

const DICTIONARY_BYTES = [0, 1, 2, 4] as const
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const
/** Magic number and descriptor. */
const START_BYTES = 5
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4
/** A block that repeats one byte. */
const RLE = 1

/** Passes a frame on. Throws if it is cut off, even if that removes only its checksum. */
export async function* wholeFrame(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const frame = new FrameReader()
  for await (const piece of pieces) {
    frame.read(piece)
    yield piece
  }
  if (!frame.isComplete) throw new Error('it is cut off')
}

/** Follows the headers of a frame, and skips what is between them. */
class FrameReader {
  /** The bytes of the header that is being read. */
  #header: number[] = []
  #headerBytes = START_BYTES
  #isInBlocks = false
  #hasChecksum = false
  #isLast = false
  /** Bytes before the next header, or before the end. */
  #skip = 0

  get isComplete(): boolean {
    return this.#isLast && this.#skip === 0
  }

  read(piece: Uint8Array): void {
    for (let at = 0; at < piece.length && !this.isComplete; ) {
      const skipped = Math.min(this.#skip, piece.length - at)
      this.#skip -= skipped
      at += skipped
      if (this.#isLast || at === piece.length) continue
      this.#header.push(piece[at++] as number)
      if (this.#header.length === this.#headerBytes) this.#readHeader()
    }
  }

  #readHeader(): void {
    const [first = 0, second = 0, third = 0, , descriptor = 0] = this.#header
    this.#header = []
    if (this.#isInBlocks) {
      const bits = first | (second << 8) | (third << 16)
      this.#isLast = (bits & 1) === 1
      this.#skip = ((bits >> 1) & 3) === RLE ? 1 : bits >> 3
      if (this.#isLast && this.#hasChecksum) this.#skip += CHECKSUM_BYTES
      return
    }
    const isSingle = (descriptor & 0x20) !== 0
    const windowBytes = isSingle ? 0 : 1
    const sizeBytes = CONTENT_SIZE_BYTES[(descriptor >> 6) as 0] || (isSingle ? 1 : 0)
    this.#hasChecksum = (descriptor & 4) !== 0
    this.#skip = windowBytes + DICTIONARY_BYTES[(descriptor & 3) as 0] + sizeBytes
    this.#headerBytes = BLOCK_HEADER_BYTES
    this.#isInBlocks = true
  }
}
