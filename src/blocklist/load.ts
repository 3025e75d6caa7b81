import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { BlocklistError, type HostList, parseBlocklist } from './parse.ts'

const CHUNK_BYTES = 256 * 1024
/** About ten times the largest public list. */
const FILE_BYTES_MAX = 512 * 1024 * 1024

/** `refused`: the file was read and is no blocklist. Throws if it cannot be read. */
export type Loaded = { list: HostList } | { refused: string }

/** What the blocklist's thread does: reads and packs one file a call. */
export const loader = {
  load({ file }: { file: string }): Loaded {
    const [seed = 0] = crypto.getRandomValues(new Int32Array(1))
    const bytesExpected = Math.min(statSync(file).size, FILE_BYTES_MAX)
    try {
      return { list: parseBlocklist(chunksOf(file), { bytesExpected, seed }) }
    } catch (error) {
      if (error instanceof BlocklistError) return { refused: error.message }
      throw error
    }
  },
}

export type LoaderCalls = typeof loader

function* chunksOf(file: string): Generator<Uint8Array> {
  const descriptor = openSync(file, 'r')
  try {
    const chunk = new Uint8Array(CHUNK_BYTES)
    let total = 0
    for (;;) {
      const length = readSync(descriptor, chunk)
      if (length === 0) return
      total += length
      if (total > FILE_BYTES_MAX) {
        throw new BlocklistError(`the file is larger than ${FILE_BYTES_MAX} bytes`)
      }
      yield chunk.subarray(0, length)
    }
  } finally {
    closeSync(descriptor)
  }
}
