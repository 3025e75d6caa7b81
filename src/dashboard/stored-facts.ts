import type { AccountRow } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { formatBytes } from '../lib/bytes.ts'
import { type Html, html } from '../lib/html.ts'

/** What an account stores, and the quotas of its plan where there are any. */
export function storedFacts(
  { linkCount, urlBytes }: Pick<AccountRow, 'linkCount' | 'urlBytes'>,
  { linksMax, urlBytesMax }: Quota,
): Html {
  const links = linkCount.toLocaleString('en')
  const bytes = formatBytes(urlBytes)
  return html`<dt>Links</dt><dd>${
    linksMax > 0 ? `${links} of ${linksMax.toLocaleString('en')}` : links
  }</dd>
    <dt>Stored URLs</dt><dd>${
      urlBytesMax > 0 ? `${bytes} of ${formatBytes(urlBytesMax)}` : bytes
    }</dd>`
}
