import { accountHeaders } from './hopcode-client.ts'
import { realisticUrl, seededRandom } from './realistic-urls.ts'
import type { Target } from './request.ts'

/** URLs per bulk request. */
export const BULK_ITEMS = 1000

/** The end of the URL of link `ordinal` of a series. No other URL contains it. */
export const bulkMark = (series: number, ordinal: number): string => `bulk=${series}.${ordinal}.`

/**
 * Bulk requests of BULK_ITEMS new URLs each. Each call for one folder needs another `series`.
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
