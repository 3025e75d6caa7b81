/** What the client's methods accept and return. Result fields use the JSON names. */

import type { Schemas } from './openapi.gen.ts'

type QueryOf<Name> = Name extends `${infer Operation}_query` ? Operation : never
type Query<Operation extends QueryOf<keyof Schemas>> = Schemas[`${Operation}_query`]

export interface CallOptions {
  /** Cancels the request and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

export interface ListOptions extends CallOptions, Query<'listLinks'> {}
export interface OwnListOptions extends CallOptions, Query<'listOwnLinks'> {}
export interface HitsOptions extends CallOptions, Query<'hits'> {}
export interface VisitsOptions extends CallOptions, Omit<Query<'visits'>, 'format'> {}

export interface QrOptions
  extends CallOptions,
    Omit<Query<'qr'>, 'logo' | 'transparent' | 'capitals'> {
  /** The logo of the code's account in the middle. The level is then H. */
  logo?: boolean
  /** No background. */
  transparent?: boolean
  /** The address in capitals, which needs fewer modules. */
  capitals?: boolean
}

/** A link as `shorten` and `bulkShorten` return it when they create it. */
export type CreatedLink = Schemas['ShortenedLink'] & { passcode: string; reused: false }
/** The code that the account already has for the URL. */
export type ReusedLink = Schemas['ShortenedLink'] & { passcode: null; reused: true }
export type ReservedCode = Schemas['ReservedCode'] & { url: null }
export type UpdatedLink = Schemas['UpdatedLink']
export type DeletedCode = Schemas['DeletedCode']

export interface BulkResult {
  count: number
  results: BulkItem[]
}
/** The result of one URL. The API description has one object with the properties of all forms. */
export type BulkItem =
  | (CreatedLink & { ok: true })
  | (ReusedLink & { ok: true })
  | { ok: false; url: string | null; error: string }

export type Link = Schemas['Link']
export type LinkPage = Schemas['LinkPage']
export type ListedLink = Schemas['ListedLink']

/** A link of the account with its optional properties. */
export type OwnLink = Schemas['OwnLink']
export type OwnLinkPage = Schemas['OwnLinkPage']
/** Properties that `patchLink` can change. Null clears one; an absent one stays. */
export interface LinkChange extends Omit<Schemas['LinkChange'], 'tags' | 'aliases'> {
  /** At most 20, each of 1 to 40 characters without a comma. Stored in small letters. */
  tags?: readonly string[] | null
  /** All further paths of the link, in exact case, without the first slash: at most 20. */
  aliases?: readonly string[] | null
}

export type Domains = Schemas['Domains']

/** A line of an export. */
export type ImportedLink = Schemas['ImportedLink']
export type ImportResult = Schemas['ImportResult']
export interface ImportOptions extends CallOptions {
  /** Nothing is written: the results are those that an import of these lines would have now. */
  dryRun?: boolean | undefined
}

export type Hits = Schemas['HitSeries']
export type LinkHits = Schemas['LinkHitSeries']
export type Visits = Schemas['VisitReport']
export type LinkVisits = Schemas['LinkVisitReport']

export interface QrImage {
  /** `image/png` or `image/svg+xml`. */
  type: string
  bytes: Uint8Array<ArrayBuffer>
}

export type QrAddresses = Schemas['QrAddresses']
export type ServiceStatus = Schemas['ServiceStatus']

export interface HopcodeOptions {
  /** Base URL of the service, such as `https://hop.example`. */
  url: string
  /** Required by every operation but the public reads. */
  apiKey?: string
  /** Default: the platform's `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Time limit of one attempt, in milliseconds. Default: 30,000. */
  timeoutMs?: number
  /** Retries after the first attempt. Default: 5. */
  retriesMax?: number
  /** Resolves after `ms`; rejects with the signal's reason. For tests. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  /** From 0 to 1, for the jitter of retry delays. Default: `Math.random`. */
  random?: () => number
  /** Current time in epoch milliseconds, for a `Retry-After` that is a date. */
  now?: () => number
}
