import { accountHeaders } from './hopcode-client.ts'
import type { Target } from './raw-client.ts'
import { realisticUrl, seededRandom } from './realistic-urls.ts'

/** What the scenarios send at once. */
export const BULK_ITEMS = 1000

/** The end of the URL of the `ordinal`-th link of a series, and of no other. */
export const bulkMark = (series: number, ordinal: number): string => `bulk=${series}.${ordinal}.`

/**
 * Bulk requests of BULK_ITEMS URLs each that no link has: `series` is a number that no other bulks
 * of this folder were made with.
 */
export function bulkTargets(apiKey: string, series: number, count: number): Target[] {
  const random = seededRandom(series)
  return Array.from({ length: count }, (_, bulk) => {
    const urls = Array.from({ length: BULK_ITEMS }, (_, item) => {
      const ordinal = bulk * BULK_ITEMS + item
      return `${realisticUrl(random, ordinal)}?${bulkMark(series, ordinal)}`
    })
    return {
      method: 'POST',
      path: '/api/bulk-shorten',
      headers: accountHeaders(apiKey),
      body: JSON.stringify({ urls }),
      status: 201,
    }
  })
}
