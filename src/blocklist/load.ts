import { readSync } from 'node:fs'
import { openFile } from '../lib/open-file.ts'
import { HostSetBuilder, type PackedHosts } from './match.ts'
import { BlocklistError, parseBlocklist } from './parse.ts'

const CHUNK_BYTES = 256 * 1024
/** About ten times the largest public list. */
const FILE_BYTES_MAX = 512 * 1024 * 1024

/** `refused`: the file can be read but is not a blocklist. */
export type Loaded =
  | { blocked: PackedHosts; exempt: PackedHosts; unknownLines: number }
  | { refused: string }

/** The functions of the blocklist's thread. */
export const loader = {
  /** Throws if the file cannot be read. */
  load({ file }: { file: string }): Loaded {
    const [seed = 0n] = crypto.getRandomValues(new BigUint64Array(1))
    const [blocked, exempt] = [new HostSetBuilder(seed), new HostSetBuilder(seed)]
    try {
      const unknownLines = parseBlocklist(chunksOf(file), { blocked, exempt })
      return { blocked: blocked.pack(), exempt: exempt.pack(), unknownLines }
    } catch (error) {
      if (error instanceof BlocklistError) return { refused: error.message }
      throw error
    }
  },
}

export type LoaderCalls = typeof loader

function* chunksOf(path: string): Generator<Uint8Array> {
  using file = openFile(path, 'r')
  const chunk = new Uint8Array(CHUNK_BYTES)
  let total = 0
  for (;;) {
    const length = readSync(file.descriptor, chunk)
    if (length === 0) return
    total += length
    if (total > FILE_BYTES_MAX) {
      throw new BlocklistError(`the file is larger than ${FILE_BYTES_MAX} bytes`)
    }
    yield chunk.subarray(0, length)
  }
}
