import type { Quota } from '../config.ts'
import { AppError } from '../errors.ts'
import { formatBytes } from '../lib/bytes.ts'

/** Which quota of its plan a change would exceed: the name of the setting's field. */
export type QuotaName = keyof Quota

/** What an account stores. */
export interface Stored {
  links: number
  urlBytes: number
}

/** The quota that `stored` exceeds; undefined where it fits. A quota of 0 is no limit. */
export function exceededQuota(stored: Stored, quota: Quota): QuotaName | undefined {
  if (quota.linksMax > 0 && stored.links > quota.linksMax) return 'linksMax'
  if (quota.urlBytesMax > 0 && stored.urlBytes > quota.urlBytesMax) return 'urlBytesMax'
  return undefined
}

export function quotaError(name: QuotaName, quota: Quota): AppError {
  const most =
    name === 'linksMax'
      ? `${quota.linksMax.toLocaleString('en')} links`
      : `${formatBytes(quota.urlBytesMax)} of URLs`
  return new AppError('quota_exceeded', `your plan stores at most ${most}`)
}
