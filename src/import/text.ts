/** Reads a file as text, whatever program has written it. */

import { batchSlices } from '../lib/time-slices.ts'
import { SourceError } from './source.ts'

/** Bytes decoded at once. */
const CHUNK_BYTES = 64 * 1024

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252'

const MARKS: readonly (readonly [encoding: Encoding, bytes: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
]

/**
 * The encoding by the byte order mark; without one UTF-8, or Windows-1252 if the bytes are not
 * valid: spreadsheets write their plain CSV so. Reads the whole file, so that no decoder replaces
 * a part of it by U+FFFD later. Throws SourceError if the file is not in the encoding of its mark.
 */
async function encodingOf({ name, blob }: NamedBlob): Promise<Encoding> {
  const start = new Uint8Array(await blob.slice(0, 3).arrayBuffer())
  const [marked] = MARKS.find(([, bytes]) => bytes.every((byte, i) => start[i] === byte)) ?? []
  if (await isValid(blob, marked ?? 'utf-8')) return marked ?? 'utf-8'
  if (marked === undefined) return 'windows-1252'
  const label = marked.toUpperCase()
  throw new SourceError(`${name} begins with the mark of ${label}, but is not valid ${label}.`)
}

async function isValid(blob: Blob, encoding: Encoding): Promise<boolean> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  try {
    for await (const chunk of chunksOf(blob)) decoder.decode(chunk, { stream: true })
    decoder.decode()
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

const START_BYTES = 64 * 1024

interface NamedBlob {
  name: string
  blob: Blob
}

export interface Beginning {
  encoding: Encoding
  /** The first text. */
  start: string
}

/** Throws SourceError for a file that is no text in the encoding of its mark. */
export async function beginningOf(file: NamedBlob): Promise<Beginning> {
  const encoding = await encodingOf(file)
  const bytes = await file.blob.slice(0, START_BYTES).arrayBuffer()
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

/**
 * The separator of the columns: spreadsheets use the list separator of the user's locale, and Excel
 * names it in a first line of its own.
 */
export function delimiterOf(start: string): string {
  const [first = ''] = start.replace(/^[\r\n]+/, '').split(/[\r\n]/, 1)
  const named = /^"?sep=(.)"?\s*$/i.exec(first)?.[1]
  if (named) return named
  const count = (sign: string) => first.split(sign).length
  const [most = ','] = [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))
  return most
}
