import { expect } from 'bun:test'

/** Requests of every endpoint, bad and good, with what the spec says of the answer. */

export const INVALID_URL = 'Invalid URL: must start with http:// or https://'
export const INVALID_CODE = 'Invalid code: must be 6-20 alphanumeric characters'
export const BLOCKED_URL = 'Destination URL is not allowed (host on abuse blocklist)'
const BAD_RANGE = /^Invalid by: /
/** Answers have it in upper case. */
export const UNKNOWN = 'Unknown1'
const notOwned = ({ code }: Link) => `Code not found: ${code}`
const NOT_FOUND = `Code not found: ${UNKNOWN.toUpperCase()}`
export const WRONG = 'A'.repeat(24)
const BLOCKED = 'http://blocked.example/'
/** A destination that is invalid and on the blocklist. */
const BLOCKED_INVALID = 'http://blocked.example/a space'
export const OLD = 'https://example.com/old'
export const NEW = 'https://example.com/new'

export interface Link {
  code: string
  passcode: string
}

export interface Request {
  json?: unknown
  code?: string
  query?: string
}

/** `says`: the text of the error, or the whole body; undefined for what the document describes. */
export type Row = readonly [status: number, says: unknown, request: Request]

const SECRET = expect.stringMatching(/^[A-Z0-9]{24}$/)
const CODE = expect.stringMatching(/^[A-Z0-9]{8}$/)
const AT = '2026-03-01T12:00:00.000Z'
export const BASE = 'http://sho.rt:8443'
export const CDN = 'https://img.example/hop'

const created = (url: string) => ({
  code: CODE,
  url,
  passcode: SECRET,
  short_url: expect.stringMatching(/^http:\/\/sho\.rt:8443\/[A-Z0-9]{8}$/),
  qr_url: expect.stringMatching(/^http:\/\/sho\.rt:8443\/qr\/[A-Z0-9]{8}$/),
  created_at: AT,
  reused: false,
})
export const missing = (field: string) => `Missing required field: ${field}`
const listed = ({ code }: Link, over: object = {}) => ({
  code,
  url: OLD,
  hit_count: 0,
  created_at: AT,
  short_url: `${BASE}/${code}`,
  qr_url: `${BASE}/qr/${code}`,
  ...over,
})

/**
 * Requests of each endpoint in the order of their refusals: each has one fault less than the one
 * before it, and the last has none. `link` is a link of the caller.
 */
export const ROWS: Record<string, (link: Link, foreign: Link) => readonly Row[]> = {
  'POST /api/shorten': ({ code }) => [
    [400, INVALID_URL, { json: {} }],
    [400, /^Invalid URL: /, { json: { url: BLOCKED_INVALID } }],
    [409, `Code already in use: ${code}`, { json: { url: BLOCKED, code } }],
    [422, BLOCKED_URL, { json: { url: BLOCKED } }],
    [201, created('https://example.com/1'), { json: { url: 'https://example.com/1' } }],
    [
      200,
      { ...created('https://example.com/1'), reused: true, passcode: null },
      { json: { url: 'https://example.com/1' } },
    ],
  ],
  'POST /api/reserve': ({ code }) => [
    [400, INVALID_CODE, { json: { code: [code] } }],
    [400, INVALID_CODE, { json: { code: `${code} ` } }],
    [409, `Code already in use: ${code}`, { json: { code: code.toLowerCase() } }],
    [
      201,
      {
        code: 'SPRING26',
        passcode: SECRET,
        url: null,
        short_url: `${BASE}/SPRING26`,
        reserved: true,
        created_at: AT,
      },
      { json: { code: 'sprinG26' } },
    ],
  ],
  'POST /api/update': ({ code, passcode }, foreign) => [
    [400, missing('code'), { json: {} }],
    [400, missing('passcode'), { json: { code: UNKNOWN } }],
    [400, missing('url'), { json: { code: UNKNOWN, passcode: WRONG } }],
    [400, INVALID_URL, { json: { code: UNKNOWN, passcode: WRONG, url: 'x' } }],
    [400, /^Invalid URL: /, { json: { code: UNKNOWN, passcode: WRONG, url: BLOCKED_INVALID } }],
    [
      403,
      `Invalid passcode for code ${UNKNOWN.toUpperCase()}`,
      { json: { code: UNKNOWN, passcode: WRONG, url: BLOCKED } },
    ],
    [
      403,
      `Invalid passcode for code ${code}`,
      { json: { code, passcode: foreign.passcode, url: BLOCKED } },
    ],
    [403, `Invalid passcode for code ${foreign.code}`, { json: { ...foreign, url: BLOCKED } }],
    [422, BLOCKED_URL, { json: { code, passcode, url: BLOCKED } }],
    [
      200,
      { code, url: NEW, short_url: `${BASE}/${code}`, updated: true },
      { json: { code: code.toLowerCase(), passcode, url: NEW } },
    ],
  ],
  'POST /api/delete': ({ code, passcode }, foreign) => [
    [400, missing('code'), { json: {} }],
    [400, missing('passcode'), { json: { code: UNKNOWN } }],
    [
      403,
      `Invalid passcode for code ${UNKNOWN.toUpperCase()}`,
      { json: { code: UNKNOWN, passcode: WRONG } },
    ],
    [403, `Invalid passcode for code ${foreign.code}`, { json: foreign }],
    [200, { code, deleted: true }, { json: { code: code.toLowerCase(), passcode } }],
  ],
  'POST /api/bulk-shorten': () => [
    [400, 'urls must contain between 1 and 1000 items', { json: { urls: [] } }],
    [400, INVALID_URL, { json: { urls: [BLOCKED, 'x'] } }],
    [422, BLOCKED_URL, { json: { urls: [BLOCKED, BLOCKED] } }],
    [
      201,
      {
        count: 4,
        results: [
          { ok: true, ...created('https://example.com/2') },
          { ok: true, ...created('https://example.com/2'), reused: true, passcode: null },
          { ok: false, url: BLOCKED, error: BLOCKED_URL },
          { ok: false, url: null, error: INVALID_URL },
        ],
      },
      { json: { urls: ['https://example.com/2', 'https://example.com/2', BLOCKED, null] } },
    ],
  ],
  'GET /api/lookup/{code}': ({ code }) => [
    [404, NOT_FOUND, { code: UNKNOWN }],
    [200, { code, url: OLD, created_at: AT, hit_count: 0 }, { code: code.toLowerCase() }],
  ],
  'GET /api/list': (link) => [
    [400, 'Invalid limit: must be an integer between 1 and 200', { query: 'limit=0&offset=x' }],
    [400, /^Invalid offset: must be an integer/, { query: 'offset=x' }],
    [
      200,
      { total: 1, limit: 50, offset: 0, count: 1, items: [listed(link)] },
      { query: `search=${link.code.toLowerCase()}` },
    ],
    [
      200,
      { total: 0, limit: 1, offset: 1, count: 0, items: [] },
      { query: 'search=nothing&limit=1&offset=1' },
    ],
  ],
  'GET /api/qr/{code}': ({ code }) => [
    [
      400,
      'Invalid size: must be an integer between 64 and 2048',
      { code: UNKNOWN, query: 'size=5' },
    ],
    [404, NOT_FOUND, { code: UNKNOWN }],
    [200, undefined, { code, query: 'format=svg' }],
    [200, undefined, { code }],
  ],
  'GET /qr/{code}': ({ code }) => [
    [404, NOT_FOUND, { code: UNKNOWN }],
    [302, `${CDN}/qr/${code}.png`, { code }],
  ],
  'GET /api/qr-image/{code}': ({ code }) => [
    [404, NOT_FOUND, { code: UNKNOWN }],
    [
      200,
      {
        code,
        url: OLD,
        short_url: `${BASE}/${code}`,
        qr_url: `${BASE}/qr/${code}`,
        qr_storage_url: `${CDN}/qr/${code}.png`,
      },
      { code },
    ],
  ],
  'GET /{code}': ({ code }) => [
    [404, NOT_FOUND, { code: UNKNOWN }],
    [302, OLD, { code }],
  ],
  'GET /api/status': () => [
    [
      200,
      {
        status: 'operational',
        database: 'ok',
        total_redirects: expect.any(Number),
        response_time_ms: expect.any(Number),
        timestamp: AT,
        version: expect.any(String),
      },
      {},
    ],
  ],
  'GET /api/domains': () => [
    [
      200,
      {
        items: [
          {
            domain: 'sho.rt',
            root_url: null,
            not_found_url: null,
            codes: 'all',
            is_default: true,
          },
        ],
      },
      {},
    ],
  ],
  'GET /api/links': ({ code }) => [
    [400, 'Invalid limit: must be an integer between 1 and 200', { query: 'limit=0&tag=' }],
    [400, /^Invalid tags: each must have/, { query: 'tag=&state=gone' }],
    [400, /^Invalid state: must be one of active, /, { query: 'state=gone' }],
    [200, undefined, { query: `search=${code.toLowerCase()}` }],
    [
      200,
      { total: 0, limit: 1, offset: 1, count: 0, items: [] },
      { query: 'search=nothing&tag=none&state=paused&limit=1&offset=1' },
    ],
  ],
  'GET /api/links/{code}': ({ code }, foreign) => [
    [404, NOT_FOUND, { code: UNKNOWN }],
    [404, notOwned(foreign), { code: foreign.code.toLowerCase() }],
    [200, undefined, { code }],
  ],
  'PATCH /api/links/{code}': ({ code }, foreign) => [
    [400, undefined, { code: UNKNOWN, json: { max_hits: 'x' } }],
    [404, NOT_FOUND, { code: UNKNOWN, json: { expired_url: BLOCKED } }],
    [404, notOwned(foreign), { code: foreign.code.toLowerCase(), json: {} }],
    [422, BLOCKED_URL, { code, json: { expired_url: BLOCKED } }],
    [409, 'Path already in use: api/status', { code, json: { aliases: ['api/status'] } }],
    [200, undefined, { code, json: PROPERTIES }],
  ],
  'GET /api/links/{code}/hits': ({ code }, foreign) => [
    [400, BAD_RANGE, { code: UNKNOWN, query: 'by=week' }],
    [404, NOT_FOUND, { code: UNKNOWN }],
    [404, notOwned(foreign), { code: foreign.code.toLowerCase() }],
    [200, undefined, { code }],
  ],
  'POST /api/import': () => [[200, undefined, { json: { url: OLD, aliases: ['not-allowed'] } }]],
  'GET /api/export': () => [
    [400, undefined, { query: 'format=xml' }],
    [200, undefined, { query: 'format=csv' }],
    [200, undefined, {}],
  ],
  'GET /api/hits': () => [
    [400, BAD_RANGE, { query: 'by=week' }],
    [200, undefined, { query: 'by=hour&from=2026-02-28T10:00:00Z' }],
  ],
  'GET /api/links/{code}/visits': ({ code }, foreign) => [
    [400, BAD_RANGE, { code: UNKNOWN, query: 'by=ip' }],
    [404, NOT_FOUND, { code: UNKNOWN, query: 'by=os' }],
    [404, notOwned(foreign), { code: foreign.code.toLowerCase(), query: 'by=os' }],
    [200, undefined, { code, query: 'by=device&format=csv' }],
    [200, undefined, { code, query: 'by=device' }],
  ],
  'GET /api/visits': () => [
    [400, BAD_RANGE, { query: 'by=ip' }],
    [200, undefined, { query: 'by=device&format=csv' }],
    [200, undefined, { query: 'by=device' }],
  ],
}
const PROPERTIES = {
  title: 'Poster',
  note: null,
  tags: ['spring'],
  starts_at: AT,
  max_hits: 5,
  expired_url: OLD,
}
