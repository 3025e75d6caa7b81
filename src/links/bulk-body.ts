import type { Account } from '../accounts/store.ts'
import type { RequestBodies } from '../http/body.ts'
import { LARGE_BODY_MAX, type ReceivedBody, readJsonBytes, SMALL_BODY_MAX } from '../http/body.ts'
import { readStringList, type StringListDocument } from '../http/string-list.ts'

/**
 * What one URL of a batch may take in a request. The longest URL has 8,192 characters, each of at
 * most 3 bytes in UTF-8. A URL with `\u` escapes takes 6 bytes per character, and fits on average:
 * one that is valid has at most 8,192 bytes once its characters are percent-encoded, which takes at
 * least as many bytes as escaping them.
 */
const URL_BYTES_MAX = 24 * 1024

/** The largest body of a batch of `urlsMax` URLs, as JSON or as a form. */
export const bulkBytesMax = (urlsMax: number): number =>
  Math.min(urlsMax * URL_BYTES_MAX + SMALL_BODY_MAX, LARGE_BODY_MAX)

export interface BulkRequest extends ReceivedBody {
  /** Not validated. It has one URL more than the batch may have, where the request has more. */
  document: StringListDocument
}

/** Throws AppError for a body that is no JSON or too large. */
export async function readBulkBody(
  bodies: RequestBodies,
  request: Request,
  account: Account,
  urlsMax: number,
): Promise<BulkRequest> {
  const limits = { owner: account.id, bytesMax: bulkBytesMax(urlsMax) }
  const body = await readJsonBytes(bodies, request, limits)
  try {
    const document = await readStringList(body.bytes, 'urls', urlsMax + 1)
    return Object.assign(body, { document })
  } catch (error) {
    body[Symbol.dispose]()
    throw error
  }
}
