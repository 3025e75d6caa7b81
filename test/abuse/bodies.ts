/**
 * Request bodies that cost a server far more than their length, for the abuse tests. Each function
 * returns a body of at most `bytes` bytes (`csrf` and the boundary of a form included) that is as
 * close to it as its shape allows.
 */

/** Shapes of JSON, each a document with the member `urls`. */
export const JSON_KINDS = [
  'distinct names',
  'empty objects',
  'nested lists',
  'nested objects',
  'numbers',
  'short strings',
  'one string',
  'escapes',
  'spaces',
  'repeated member',
  'list never closed',
] as const
export type JsonKind = (typeof JSON_KINDS)[number]

/** For `POST /api/bulk-shorten` and every other write, with `Content-Type: application/json`. */
export function hostileJson(kind: JsonKind, bytes: number): string {
  const [start, end] = ['{"urls":[', ']}']
  const room = bytes - start.length - end.length
  if (kind === 'repeated member') {
    const [first, again] = ['{"urls":[]', ',"urls":[]']
    return `${first}${again.repeat((bytes - first.length - 1) / again.length)}}`
  }
  if (kind === 'list never closed') return start + '['.repeat(bytes - start.length)
  return start + itemsOf(kind, room) + end
}

function itemsOf(kind: JsonKind, room: number): string {
  if (kind === 'distinct names') return distinctNames(room)
  if (kind === 'empty objects') return `{}${',{}'.repeat((room - 2) / 3)}`
  if (kind === 'nested lists') return '['.repeat(room / 2) + ']'.repeat(room / 2)
  if (kind === 'nested objects') {
    const depth = Math.floor((room - 1) / 6)
    return `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  }
  if (kind === 'numbers') return `1${',1'.repeat((room - 1) / 2)}`
  if (kind === 'short strings') return `""${',""'.repeat((room - 2) / 3)}`
  if (kind === 'one string') return `"http://${'a'.repeat(room - 9)}"`
  if (kind === 'escapes') return `"${'\\u0061'.repeat((room - 2) / 6)}"`
  return ' '.repeat(room)
}

function distinctNames(room: number): string {
  const parts = ['1']
  for (let length = 1, n = 0; ; n++) {
    const part = `,{"k${n}":1}`
    length += part.length
    if (length > room) return parts.join('')
    parts.push(part)
  }
}

/** The longest URLs that a link may have, all different: `count` of them, about 8 KiB each. */
export function longestUrls(count: number, seed = ''): string[] {
  const start = (n: number) => `https://long.example/${seed}/${n}/`
  return Array.from({ length: count }, (_, n) => start(n).padEnd(8192, 'abcdefghij'))
}

/** A CSV file of lines with one letter. */
export const oneCharacterCsv = (bytes: number): string => 'x\n'.repeat(bytes / 2)

/** A CSV file of one line with nothing but separators. */
export const separatorsCsv = (bytes: number): string => ','.repeat(bytes)

/** A CSV file, or pasted text, of empty lines. */
export const emptyLines = (bytes: number): string => '\n'.repeat(bytes)

/** A form of fields without values, for `application/x-www-form-urlencoded`. */
export const manyFieldsForm = (bytes: number): string => 'a=&'.repeat(bytes / 3)

const BOUNDARY = 'X'
export const MULTIPART_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

/** A form of parts without values, for `MULTIPART_TYPE`. */
export function manyPartsForm(bytes: number): string {
  const part = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n`
  return `${part.repeat((bytes - 5) / part.length)}--${BOUNDARY}--`
}

/** The form of `/app/links/bulk` with a file, for `MULTIPART_TYPE`: `csrf` is the page's token. */
export function csvForm(csrf: string, file: string): string {
  const field = (name: string, text: string, more = '') =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`
  const fileField = field('file', file, '; filename="a.csv"\r\nContent-Type: text/csv')
  return `${field('csrf', csrf)}${field('urls', '')}${fileField}--${BOUNDARY}--\r\n`
}
