/** The parts of a request's context that the API and the pages use: client, id, headers. */

import type { Client, ClientAddress } from '../hot/client-address.ts'

/** Collects the headers of a response, whether it succeeds or not. */
export interface ResponseState {
  headers: Record<string, string | number>
}

/** The part of Elysia's context that guards need. */
export interface RequestContext {
  request: Request
  set: ResponseState
}

/** The part of Headers that readers of requests need. */
export type RequestHeaders = Pick<Headers, 'get'>

/** Whether a visitor asks not to be tracked. */
export const isUntracked = (headers: { get(name: string): string | null | undefined }): boolean =>
  headers.get('dnt') === '1' || headers.get('sec-gpc') === '1'

/** The address of the connection on which a redirect thread received the request. */
const peers = new WeakMap<Request, string>()

export const setPeer = (request: Request, peer: string): void => void peers.set(request, peer)

/** Empty if it is not known. */
export const peerOf = (request: Request): string => peers.get(request) ?? ''

export const clientOf = (address: ClientAddress, request: Request): Client =>
  address.resolve(address.parsePeer(peerOf(request)), request.headers)

/** Requests for short links, also for aliases of several segments, which have no route. */
const shortLinks = new WeakSet<Request>()

export const markShortLink = (request: Request): void => void shortLinks.add(request)
export const isShortLink = (request: Request): boolean => shortLinks.has(request)

export const REQUEST_ID = 'x-request-id'

/**
 * HOT PATH: every redirect has an id, which identifies it in its response and in the log. Two ids
 * do not reveal how many requests came between them.
 */
export const newRequestId = (): string => crypto.randomUUID()
