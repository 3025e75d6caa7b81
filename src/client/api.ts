/** What the client's methods accept and return. Result fields use the JSON names. */

import type { operations } from './openapi.gen.ts'

type Query<Operation extends 'list' | 'hits' | 'visits' | 'qr'> = NonNullable<
  operations[Operation]['parameters']['query']
>

type Result<Operation extends keyof operations, Status extends number = 200> =
  operations[Operation]['responses'] extends Record<
    Status,
    { content: { 'application/json': infer View } }
  >
    ? View
    : never

export interface CallOptions {
  /** Cancels the request and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

export interface ListOptions extends CallOptions, Query<'list'> {}
export interface HitsOptions extends CallOptions, Query<'hits'> {}
export interface VisitsOptions extends CallOptions, Omit<Query<'visits'>, 'format' | 'limit'> {
  /** How many values are listed, 1 to 1000. */
  limit?: number
}

export interface QrOptions extends CallOptions, Omit<Query<'qr'>, 'logo'> {
  /** The logo of the code's account in the middle. The level is then H. */
  logo?: boolean
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
export type CreatedLink = Result<'shorten', 201>
/** The code that the account already has for the URL. */
export type ReusedLink = Result<'shorten'>
export type ReservedCode = Result<'reserve', 201>
export type UpdatedLink = Result<'update'>
export type DeletedCode = Result<'delete'>

export type BulkResult = Result<'bulkShorten', 201>
export type BulkItem = BulkResult['results'][number]

export type Link = Result<'lookup'>
export type LinkPage = Result<'list'>
export type ListedLink = LinkPage['items'][number]

type Patch = operations['patchLink']['requestBody']['content']['application/json']

/** A link of the account with its optional properties. */
export type OwnLink = Result<'getLink'>
/** Properties that `patchLink` can change. Null clears one; an absent one stays. */
export interface LinkChange extends Omit<Patch, 'tags' | 'aliases'> {
  /** At most 20, each of 1 to 40 characters without a comma. Stored in small letters. */
  tags?: readonly string[] | null
  /** All further paths of the link, in exact case, without the first slash: at most 20. */
  aliases?: readonly string[] | null
}

/** A line of an export. */
export type ImportedLink =
  operations['importLinks']['requestBody']['content']['application/x-ndjson']
export type ImportResult = Result<'importLinks'>
export interface ImportOptions extends CallOptions {
  /**
   * Nothing is written. What earlier dry runs of the same import would have created: the sums of
   * their results, and the lines that have a path or a URL in common with these.
   */
  dryRun?: { links: number; bytes: number; related?: readonly string[] } | undefined
}

export type Hits = Result<'hits'>
export type LinkHits = Result<'linkHits'>
export type Visits = Result<'visits'>
export type LinkVisits = Result<'linkVisits'>

export interface QrImage {
  /** `image/png` or `image/svg+xml`. */
  type: string
  bytes: Uint8Array<ArrayBuffer>
}

export type QrAddresses = Result<'qrImage'>
export type ServiceStatus = Result<'status'>
