import type { Database } from 'bun:sqlite'
import type { AccountId } from '../../src/accounts/store.ts'
import { type CreatedLink, encodeCreate, type NewLink } from '../../src/links/link.ts'
import { linkWrites } from '../../src/links/put.ts'
import { urlKey } from '../../src/links/url.ts'
import type { ListQuery, linkLists, Matches } from '../../src/lists/lists.ts'

const NO_QUOTA = { linksMax: 0, urlBytesMax: 0 }

/** Writes links at the time 0, without quotas, in the name of their account. */
export function plainWrites(db: Database) {
  const { createEncoded, changeUrl, deleteLink } = linkWrites(db)
  const authorOf = (accountId: AccountId) => ({ accountId, by: 'operator', now: 0 }) as const
  return {
    create(accountId: AccountId, items: readonly NewLink[]): CreatedLink[] {
      const command = { author: authorOf(accountId), items, quota: NO_QUOTA }
      return JSON.parse(createEncoded(encodeCreate(command)))
    },
    setUrl: (accountId: AccountId, id: number, url: string) =>
      changeUrl({
        id,
        url,
        urlKey: urlKey(new URL(url)),
        quota: NO_QUOTA,
        author: authorOf(accountId),
      }),
    remove: (accountId: AccountId, id: number) => deleteLink({ id, author: authorOf(accountId) }),
  }
}

/** A page of a list, in as many time slices as it takes. */
export function listLinks(
  lists: Pick<ReturnType<typeof linkLists>, 'listLinksSlice'>,
  query: ListQuery,
): Matches {
  for (;;) {
    const found = lists.listLinksSlice(query)
    if (found) return found
  }
}
