/** The parts of a request's context that the API and the pages use: client, id, headers. */

import type { Client, ClientAddress } from '../hot/client-address.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'

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

/** The address of the connection on which a redirect thread received the request. */
const peers = new WeakMap<Request, string>()

export const setPeer = (request: Request, peer: string): void => void peers.set(request, peer)

/** Empty if it is not known. */
export const peerOf = (request: Request): string => peers.get(request) ?? ''

export const clientOf = (address: ClientAddress, request: Request): Client =>
  address.resolve(address.parsePeer(peerOf(request)), request.headers)

export const REQUEST_ID = 'x-request-id'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** The permuted part has 31 bits: JavaScript formats such a number faster than a larger one. */
const MASK = 0x7fffffff

/**
 * Creates the ids that identify requests in responses and in the log. An id is a random prefix and
 * a counter under a random permutation, so two ids do not reveal how many requests came between
 * them. No id is repeated under a prefix, and a new prefix is drawn when all ids of one are used.
 */
export class RequestIds {
  readonly #random: RandomBytes
  readonly #idsPerPrefix: number
  #prefix = ''
  #start = 0
  #factors: [number, number] = [1, 1]
  #count: number

  constructor(random: RandomBytes, { idsPerPrefix = MASK } = {}) {
    this.#random = random
    this.#idsPerPrefix = idsPerPrefix
    this.#count = idsPerPrefix
  }

  /** HOT PATH: every redirect has an id. */
  next(): string {
    if (this.#count >= this.#idsPerPrefix) this.#renew()
    // Each step is invertible, so different counts give different numbers.
    const [first, second] = this.#factors
    let x = (this.#count++ ^ this.#start) & MASK
    x = Math.imul(x ^ (x >>> 16), first) & MASK
    x = Math.imul(x ^ (x >>> 15), second) & MASK
    return this.#prefix + (x ^ (x >>> 16)).toString(36)
  }

  #renew(): void {
    this.#prefix = `${randomString(this.#random, ALPHABET, 8)}-`
    const bytes = this.#random(12)
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    this.#start = view.getInt32(0)
    // Multiplication by an odd number is invertible.
    this.#factors = [view.getInt32(4) | 1, view.getInt32(8) | 1]
    this.#count = 0
  }
}
