/**
 * The part of the tar format that a backup is made of (POSIX.1-1988 "ustar"): regular files of mode
 * 0600, and sizes of 8 GiB and more in GNU's base-256 form. Any tar program reads it. Read back, it
 * must be byte for byte what `tarHeader` and `tarPadding` write, so that no damage passes.
 */

const TAR_BLOCK_BYTES = 512

/** Two empty blocks: nothing follows them. */
export const tarEnd = (): Uint8Array => new Uint8Array(2 * TAR_BLOCK_BYTES)

export interface TarEntry {
  /** 1 to 100 ASCII characters. */
  name: string
  /** Bytes. */
  size: number
  /** Epoch seconds. */
  modified: number
}

const FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  owner: [108, 8],
  group: [116, 8],
  size: [124, 12],
  modified: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8],
} as const

/** The first size that eleven octal digits cannot say. */
const OCTAL_END = 8 ** 11
const BASE_256 = 0x80

export function tarHeader({ name, size, modified }: TarEntry): Buffer {
  const block = Buffer.alloc(TAR_BLOCK_BYTES)
  const put = (field: keyof typeof FIELDS, text: string) =>
    block.write(text, FIELDS[field][0], FIELDS[field][1], 'latin1')
  put('name', name)
  put('mode', '0000600\0')
  put('owner', '0000000\0')
  put('group', '0000000\0')
  if (size < OCTAL_END) put('size', octal(size, 11))
  else putBase256(block, size)
  put('modified', octal(modified, 11))
  put('checksum', '        ')
  put('type', '0')
  put('magic', 'ustar\x0000')
  put('checksum', `${octal(sumOf(block), 6)}\0 `)
  return block
}

/** What fills an entry's last block. */
export function tarPadding(size: number): Uint8Array {
  return new Uint8Array((TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES)
}

/** The file is not a tar as `tarHeader` writes it, or not a whole one. Says what is wrong. */
export class TarError extends Error {
  override readonly name = 'TarError'
}

/**
 * The entries of a tar, in order and in bounded memory. Each body must be read to its end before
 * the next entry. Throws TarError, and does not end before the tar's own end was seen.
 */
export async function* readTar(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<TarEntry & { body: AsyncIterable<Uint8Array> }> {
  const bytes = new ByteReader(source)
  for (;;) {
    const block = await bytes.take(TAR_BLOCK_BYTES)
    if (isEmpty(block)) break
    const entry = parseHeader(block)
    yield { ...entry, body: bytes.next(entry.size) }
    const padding = await bytes.take(tarPadding(entry.size).length)
    if (!isEmpty(padding)) throw new TarError(`there are stray bytes behind ${entry.name}`)
  }
  if (!isEmpty(await bytes.take(TAR_BLOCK_BYTES))) throw new TarError('its end is damaged')
  if (!(await bytes.atEnd())) throw new TarError('there are stray bytes at its end')
}

function parseHeader(block: Buffer): TarEntry {
  const text = (field: keyof typeof FIELDS) => {
    const [start, length] = FIELDS[field]
    return block.toString('latin1', start, start + length).replace(/\0[\s\S]*$/, '')
  }
  const [sizeAt] = FIELDS.size
  const size =
    block[sizeAt] === BASE_256
      ? Number(block.readBigUInt64BE(sizeAt + 4))
      : Number.parseInt(text('size'), 8)
  const entry = { name: text('name'), size, modified: Number.parseInt(text('modified'), 8) }
  const isWritable = Number.isSafeInteger(size) && Number.isSafeInteger(entry.modified)
  if (!isWritable || !tarHeader(entry).equals(block)) {
    throw new TarError('it is no tar file of a backup, or a header in it is damaged')
  }
  return entry
}

const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')

function putBase256(block: Buffer, size: number): void {
  const [start] = FIELDS.size
  block[start] = BASE_256
  block.writeBigUInt64BE(BigInt(size), start + 4)
}

function sumOf(block: Uint8Array): number {
  let sum = 0
  for (const byte of block) sum += byte
  return sum
}

const isEmpty = (bytes: Uint8Array) => bytes.every((byte) => byte === 0)

/** Cuts a stream of chunks of any length where its reader wants it cut. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]()
  }

  /** Exactly `length` bytes at once: for short stretches. */
  async take(length: number): Promise<Buffer> {
    const parts: Uint8Array[] = []
    for await (const part of this.next(length)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** Exactly `length` bytes, in pieces. */
  async *next(length: number): AsyncGenerator<Uint8Array> {
    let missing = length
    while (missing > 0) {
      if (!(await this.#fill())) throw new TarError('it ends too early')
      const part = this.#rest.subarray(0, missing)
      this.#rest = this.#rest.subarray(part.length)
      missing -= part.length
      yield part
    }
  }

  async atEnd(): Promise<boolean> {
    return !(await this.#fill())
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next()
      if (done) return false
      this.#rest = value
    }
    return true
  }
}
