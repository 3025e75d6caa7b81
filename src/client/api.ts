/** What the client's methods accept and return. Fields of results have the names of the JSON. */

export interface CallOptions {
  /** Cancels the request and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

export interface ListOptions extends CallOptions {
  /** 1 to 200. Default: 50. */
  limit?: number
  /** Links to skip, newest first. */
  offset?: number
  /** Part of the code or the URL, in any letter case. */
  search?: string
}

export interface HitsOptions extends CallOptions {
  /** A UTC date, or a time in ISO 8601. Default: 30 days before `to`, or 24 hours by hour. */
  from?: string
  /** A UTC date, which is included, or the time before which the range ends. Default: now. */
  to?: string
  /** Default: `day`. At most 31 days by hour, and 400 by day. */
  by?: 'hour' | 'day'
}

export interface QrOptions extends CallOptions {
  format?: 'png' | 'svg'
  /** Width and height of a PNG in pixels, 64 to 2048. Default: 512. */
  size?: number
  /** Hex color, such as `#1a2e4f`. */
  dark?: string
  light?: string
  /** Light modules on each side, 0 to 16. Default: 4. */
  margin?: number
  /** Error correction. Default: M; always H with a logo. */
  level?: 'L' | 'M' | 'Q' | 'H'
  /** The logo of the code's account in the middle. */
  logo?: boolean
  /** `1` for the short URL, or a text of at most 40 printable ASCII characters below the code. */
  caption?: string
}

export type ErrorKind =
  | 'invalid_request'
  | 'invalid_api_key'
  | 'invalid_passcode'
  | 'not_found'
  | 'code_in_use'
  | 'disabled'
  | 'too_large'
  | 'not_allowed'
  | 'rate_limited'
  | 'unavailable'
  | 'internal'
  | 'unexpected'

/** A link as `shorten` and `bulkShorten` return it when they create it. */
export interface CreatedLink {
  code: string
  url: string
  /** Needed to update or delete the code through the API. The service never shows it again. */
  passcode: string
  short_url: string
  qr_url: string
  /** ISO 8601, UTC. */
  created_at: string
  reused: false
}

/** The code that the account already has for the URL. */
export interface ReusedLink extends Omit<CreatedLink, 'passcode' | 'reused'> {
  passcode: null
  reused: true
}

export interface ReservedCode {
  code: string
  passcode: string
  url: null
  short_url: string
  reserved: true
  created_at: string
}

export interface UpdatedLink {
  code: string
  url: string
  short_url: string
  updated: true
}

export interface DeletedCode {
  code: string
  deleted: true
}

export type BulkItem =
  | (CreatedLink & { ok: true })
  | (ReusedLink & { ok: true })
  | { ok: false; url: string | null; error: string }

export interface BulkResult {
  count: number
  /** In the order of the URLs. */
  results: BulkItem[]
}

export interface Link {
  code: string
  /** Null while the code is reserved and has no destination. */
  url: string | null
  created_at: string
  hit_count: number
}

export interface ListedLink extends Link {
  short_url: string
  qr_url: string
}

/** Properties that `patchLink` can change. Null clears one; an absent one stays. */
export interface LinkChange {
  /** At most 200 characters. */
  title?: string | null
  /** At most 2,000 characters. */
  note?: string | null
  /** At most 20, each of 1 to 40 characters without a comma. Stored in small letters. */
  tags?: readonly string[] | null
  /** Visitors get 404. */
  paused?: boolean | null
  /** ISO 8601. Visitors get 404 before this time. */
  starts_at?: string | null
  /** ISO 8601. From this time on visitors get 410, or `expired_url`. */
  expires_at?: string | null
  /** After so many hits visitors get 410, or `expired_url`. */
  max_hits?: number | null
  expired_url?: string | null
  /** The query string of a request is added to the destination. */
  forward_query?: boolean | null
  /** Redirects have the header `X-Robots-Tag: noindex`. */
  no_index?: boolean | null
}

/** A link of the account with its optional properties. */
export interface OwnLink extends ListedLink {
  title: string | null
  note: string | null
  /** In alphabetical order. */
  tags: string[]
  paused: boolean
  starts_at: string | null
  expires_at: string | null
  max_hits: number | null
  expired_url: string | null
  forward_query: boolean
  no_index: boolean
  /** When a deletion in the dashboard takes effect. */
  delete_at: string | null
}

export interface LinkPage {
  /** Links in all that match. */
  total: number
  limit: number
  offset: number
  /** Links on this page. */
  count: number
  items: ListedLink[]
}

export interface Hits {
  /** When the first bucket begins, and when the last one ends. */
  from: string
  to: string
  by: 'hour' | 'day'
  time_zone: 'UTC'
  /** Hits in all buckets. */
  total: number
  /** In the order of time, also those without hits. */
  buckets: { start: string; hits: number }[]
}

export interface LinkHits extends Hits {
  code: string
}

export interface QrImage {
  /** `image/png` or `image/svg+xml`. */
  type: string
  bytes: Uint8Array<ArrayBuffer>
}

export interface QrAddresses {
  code: string
  url: string | null
  short_url: string
  qr_url: string
  qr_storage_url: string
}

export interface ServiceStatus {
  status: 'operational'
  database: 'ok'
  total_redirects: number
  response_time_ms: number
  timestamp: string
  version: string
}
