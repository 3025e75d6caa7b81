/** Reads a file as text, whatever program has written it. */

import { batchSlices } from '../lib/time-slices.ts'

/** Bytes decoded at once. */
const CHUNK_BYTES = 64 * 1024

export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252'

const MARKS: readonly (readonly [encoding: Encoding, bytes: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
]

/**
 * By its byte order mark; without one UTF-8, or Windows-1252 if the bytes are none: spreadsheets
 * write their plain CSV so. Reads the whole file.
 */
async function encodingOf(file: Blob): Promise<Encoding> {
  const start = new Uint8Array(await file.slice(0, 3).arrayBuffer())
  const mark = MARKS.find(([, bytes]) => bytes.every((byte, i) => start[i] === byte))
  if (mark) return mark[0]
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of chunksOf(file)) decoder.decode(chunk, { stream: true })
    decoder.decode()
    return 'utf-8'
  } catch {
    return 'windows-1252'
  }
}

const START_BYTES = 64 * 1024

export interface Beginning {
  encoding: Encoding
  /** The first text. */
  start: string
}

export async function beginningOf(file: Blob): Promise<Beginning> {
  const encoding = await encodingOf(file)
  const bytes = await file.slice(0, START_BYTES).arrayBuffer()
  return { encoding, start: new TextDecoder(encoding).decode(bytes) }
}

/** The text of a file in chunks, without a byte order mark. */
export async function* textOf(
  file: Blob,
  encoding: Encoding,
  chunkBytes = CHUNK_BYTES,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder(encoding)
  for await (const chunk of chunksOf(file, chunkBytes)) {
    yield decoder.decode(chunk, { stream: true })
  }
  yield decoder.decode()
}

async function* chunksOf(file: Blob, chunkBytes = CHUNK_BYTES): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < file.size; at += chunkBytes) {
    yield new Uint8Array(await file.slice(at, at + chunkBytes).arrayBuffer())
    // A chunk takes milliseconds, and may contain no row.
    await batchSlices.next()
  }
}

/** The separator of the columns: spreadsheets use the list separator of the user's locale. */
export function delimiterOf(start: string): string {
  const [first = ''] = start.split(/[\r\n]/, 1)
  const named = /^"?sep=(.)"?$/i.exec(first)?.[1]
  if (named) return named
  const count = (sign: string) => first.split(sign).length
  const [most = ','] = [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))
  return most
}
