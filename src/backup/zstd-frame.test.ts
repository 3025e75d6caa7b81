import { expect, test } from 'bun:test'
import { constants, zstdCompressSync } from 'node:zlib'
import { wholeFrame } from './zstd-frame.ts'

const BLOCK_BYTES = 128 * 1024

const CONTENTS = {
  nothing: Buffer.alloc(0),
  'one byte': Buffer.from('x'),
  'a block of zeros': Buffer.alloc(BLOCK_BYTES),
  'blocks of text': Buffer.from('hopcode '.repeat(BLOCK_BYTES / 4)),
  'random bytes': Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))),
}

async function passes(frame: Uint8Array, pieceBytes: number): Promise<boolean> {
  async function* pieces() {
    for (let at = 0; at < frame.length; at += pieceBytes) yield frame.subarray(at, at + pieceBytes)
  }
  const passed: Uint8Array[] = []
  try {
    for await (const piece of wholeFrame(pieces())) passed.push(piece)
  } catch {
    return false
  }
  expect(Buffer.concat(passed)).toEqual(Buffer.from(frame))
  return true
}

test.each(Object.entries(CONTENTS))(
  'a frame of %s is whole, and none of its beginnings is',
  async (_, content) => {
    for (const checksum of [0, 1]) {
      const params = { [constants.ZSTD_c_checksumFlag]: checksum }
      const frame = zstdCompressSync(content, { params })
      for (const pieceBytes of [1, 7, frame.length])
        expect(await passes(frame, pieceBytes)).toBe(true)
      for (const cut of [1, 2, 3, 4, 5, 6, 7, frame.length - 1].filter((n) => n < frame.length)) {
        expect([cut, await passes(frame.subarray(0, -cut), 5)]).toEqual([cut, false])
      }
    }
  },
)
