/** What the client's methods accept and return. Result fields use the JSON names. */

import type { Schemas } from './openapi.gen.ts'

type Query<Operation extends 'list' | 'hits' | 'visits' | 'qr'> = Schemas[`${Operation}_query`]

export interface CallOptions {
  /** Cancels the request and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

export interface ListOptions extends CallOptions, Query<'list'> {}
export interface HitsOptions extends CallOptions, Query<'hits'> {}
export interface VisitsOptions extends CallOptions, Omit<Query<'visits'>, 'format'> {}

export interface QrOptions extends CallOptions, Omit<Query<'qr'>, 'logo'> {
  /** The logo of the code's account in the middle. The level is then H. */
  logo?: boolean
}

/** A link as `shorten` and `bulkShorten` return it when they create it. */
export type CreatedLink = Schemas['shorten_201']
/** The code that the account already has for the URL. */
export type ReusedLink = Schemas['shorten_200']
export type ReservedCode = Schemas['reserve_201']
export type UpdatedLink = Schemas['update_200']
export type DeletedCode = Schemas['delete_200']

export type BulkResult = Schemas['bulkShorten_201']
export type BulkItem = BulkResult['results'][number]

export type Link = Schemas['lookup_200']
export type LinkPage = Schemas['list_200']
export type ListedLink = LinkPage['items'][number]

/** A link of the account with its optional properties. */
export type OwnLink = Schemas['getLink_200']
/** Properties that `patchLink` can change. Null clears one; an absent one stays. */
export interface LinkChange extends Omit<Schemas['patchLink_body'], 'tags' | 'aliases'> {
  /** At most 20, each of 1 to 40 characters without a comma. Stored in small letters. */
  tags?: readonly string[] | null
  /** All further paths of the link, in exact case, without the first slash: at most 20. */
  aliases?: readonly string[] | null
}

/** A line of an export. */
export type ImportedLink = Schemas['importLinks_body']
export type ImportResult = Schemas['importLinks_200']
export interface ImportOptions extends CallOptions {
  /**
   * Nothing is written. What earlier dry runs of the same import would have created: the sums of
   * their results, and the lines that have a path or a URL in common with these.
   */
  dryRun?: { links: number; bytes: number; related?: readonly string[] } | undefined
}

export type Hits = Schemas['hits_200']
export type LinkHits = Schemas['linkHits_200']
export type Visits = Schemas['visits_200']
export type LinkVisits = Schemas['linkVisits_200']

export interface QrImage {
  /** `image/png` or `image/svg+xml`. */
  type: string
  bytes: Uint8Array<ArrayBuffer>
}

export type QrAddresses = Schemas['qrImage_200']
export type ServiceStatus = Schemas['status_200']
