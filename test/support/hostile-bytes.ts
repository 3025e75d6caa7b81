/**
 * Malformed, ambiguous and oversized requests as bytes (latin1), with what must come back. The code
 * HOPCODE1 leads to https://example.com/landing, and the account of `{key}` has a code for
 * https://example.com/known.
 */

export interface HostileRequest {
  name: string
  bytes: string
  /** Statuses in order; with a text, that is in the answer's body. */
  answers: readonly (number | readonly [status: number, text: string])[]
  /** The connection goes on after them, is closed by the service, or is no longer listened to. */
  connection: 'open' | 'closed' | 'deaf'
  /** Which answers are to HEAD. */
  bodiless?: readonly number[]
  /** Answered by Bun's server before our code sees it: listed in docs/http-edge.md. */
  byBun?: true
}

export const CRLF = '\r\n'
export const HOST = 'Host: hop.test'
export const BODY = JSON.stringify({ url: 'https://example.com/known' })
export const SIZE = BODY.length.toString(16)
export const LIVE = '"status":"live"'

export const lines = (...all: string[]) => [...all, '', ''].join(CRLF)
export const get = (path: string, ...headers: string[]) =>
  lines(`GET ${path} HTTP/1.1`, HOST, ...headers)
/** What an attacker would have answered on somebody else's behalf. */
export const SMUGGLED = get('/-/live')
export const REDIRECT = get('/HOPCODE1')
export const utf8 = (text: string) => Buffer.from(text).toString('latin1')

export const post = (headers: readonly string[], body: string) =>
  lines(
    'POST /api/shorten HTTP/1.1',
    HOST,
    'X-API-Key: {key}',
    'Content-Type: application/json',
    ...headers,
  ) + body
export const chunked = (body: string, coding = 'Transfer-Encoding: chunked') => post([coding], body)
export const CHUNKS = `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}`

export const refused = (status: number, rows: Record<string, string>): HostileRequest[] =>
  Object.entries(rows).map(([name, bytes]) => ({
    name,
    bytes,
    answers: [status],
    connection: 'closed',
    byBun: true,
  }))
export const silent = (rows: Record<string, string>): HostileRequest[] =>
  Object.entries(rows).map(([name, bytes]) => ({
    name,
    bytes,
    answers: [],
    connection: 'closed',
    byBun: true,
  }))
export const answered = (
  answer: HostileRequest['answers'][number],
  rows: Record<string, string>,
  connection: HostileRequest['connection'] = 'open',
): HostileRequest[] =>
  Object.entries(rows).map(([name, bytes]) => ({ name, bytes, answers: [answer], connection }))
