import type { HopcodeClient } from './hopcode-client.ts'
import type { Target } from './request.ts'
import type { Server } from './server.ts'
import { BUDGET_MAX, type Link } from './variants.ts'

/** The headers of every variant's response, and two that servers add themselves. */
const HEADERS = [
  'cache-control',
  'location',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-service-code',
]
const ADDED_BY_SERVER = ['content-length', 'date']

/** The limiter's window: an older process no longer counts its first requests. */
const WINDOW_SECONDS = 60

/** Follows a link. Returns the headers; throws Error unless the response is as expected. */
export async function followLink(server: Server, { code, url }: Link): Promise<Headers> {
  const answer = await fetch(`${server.origin}/${code}`, { redirect: 'manual' })
  await answer.arrayBuffer()
  const { status, headers } = answer
  const isRight =
    status === 302 &&
    headers.get('location') === url &&
    headers.get('cache-control') === 'no-store' &&
    headers.get('x-service-code') === code &&
    (headers.get('x-request-id') ?? '') !== ''
  if (isRight) return headers
  const text = JSON.stringify(Object.fromEntries(headers))
  throw new Error(`${server.name}: /${code} is not the agreed redirect: ${status} ${text}`)
}

/** Sends a request once. Throws Error unless the response is as expected. */
export async function requireAnswer(
  { name, origin }: Server,
  { path, status, location }: Target,
): Promise<void> {
  const answer = await fetch(`${origin}${path}`, { redirect: 'manual' })
  await answer.arrayBuffer()
  const found = answer.headers.get('location') ?? undefined
  if (answer.status === status && found === location) return
  throw new Error(`${name}: ${path} is answered with ${answer.status} ${found}`)
}

/**
 * Throws Error unless the headers state a budget, and for headers beside the usual and the `added`
 * ones: the responses would not be comparable.
 */
export function requireComparable(
  name: string,
  headers: Headers,
  added: readonly string[] = [],
): void {
  const [limit = Number.NaN, remaining = Number.NaN, reset = Number.NaN] = HEADERS.filter(
    (header) => header.startsWith('x-ratelimit-'),
  ).map((header) => Number(headers.get(header) ?? Number.NaN))
  const hasBudget = remaining >= 0 && remaining <= limit && Number.isInteger(reset)
  const others = [...headers.keys()].filter(
    (header) => ![...HEADERS, ...ADDED_BY_SERVER, ...added].includes(header),
  )
  if (hasBudget && others.length === 0) return
  const text = JSON.stringify(Object.fromEntries(headers))
  throw new Error(`${name}: no budget, or more headers than agreed: ${text}`)
}

/** Compares the service's `hit_count`s with the redirects that a generator received. */
export class HitCheck {
  readonly #client: HopcodeClient
  readonly #codes: string[]
  #atStart: number[] = []
  #before: number[] = []

  constructor(client: HopcodeClient, links: readonly Link[]) {
    this.#client = client
    this.#codes = links.map(({ code }) => code)
  }

  /** Call it before the first redirect of the process. */
  async start(): Promise<void> {
    this.#atStart = await this.#client.hitCounts(this.#codes)
  }

  /** Starts the period that the next `require…` checks. */
  async begin(): Promise<void> {
    this.#before = await this.#client.hitCounts(this.#codes)
  }

  /**
   * Throws unless every code rose by exactly its number of redirects, given in the links' order.
   */
  async requireExactly(redirects: readonly number[]): Promise<void> {
    const rises = await this.#risesSince(this.#before)
    const at = rises.findIndex((rise, index) => rise !== redirects[index])
    if (at === -1) return
    throw new Error(`hit_count of ${this.#codes[at]} rose by ${rises[at]}, not ${redirects[at]}`)
  }

  /** Throws unless all codes together rose by `least` to `most`. */
  async requireBetween(least: number, most: number): Promise<void> {
    requireBetween(sum(await this.#risesSince(this.#before)), least, most)
  }

  /**
   * Throws unless the limiter has counted every redirect of this process. Sends one more redirect
   * to read the remaining budget.
   */
  async requireCountedByLimiter(server: Server, link: Link): Promise<void> {
    const headers = await followLink(server, link)
    const resetIn = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000
    if (resetIn < -1 || resetIn > WINDOW_SECONDS + 1) {
      throw new Error(`X-RateLimit-Reset is ${resetIn} seconds from now`)
    }
    if (server.ageSeconds >= WINDOW_SECONDS) return
    const spent = sum(await this.#risesSince(this.#atStart))
    const remaining = Number(headers.get('x-ratelimit-remaining'))
    if (remaining === BUDGET_MAX - spent) return
    throw new Error(
      `X-RateLimit-Remaining is ${remaining} after ${spent} of ${BUDGET_MAX} requests`,
    )
  }

  async #risesSince(earlier: readonly number[]): Promise<number[]> {
    const now = await this.#client.hitCounts(this.#codes)
    return now.map((count, index) => count - (earlier[index] ?? 0))
  }
}

/** Throws unless a counter of redirects rose by `least` to `most`. */
export function requireBetween(rise: number, least: number, most: number): void {
  if (rise >= least && rise <= most) return
  throw new Error(`the counted redirects rose by ${rise}, not by ${least} to ${most}`)
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
