import type { z } from 'zod'
import type { Account } from '../accounts/store.ts'
import { pastedSearch } from '../addresses/resolve.ts'
import { MINUTE } from '../lib/clock.ts'
import { lookupView, ownView, withDetails } from '../links/properties.ts'
import type { ListKit } from './export.ts'
import type { ListQuery, ListView, OwnListQuery, OwnListView } from './schema.ts'

/** Pages of lists as the API shows them. */

/** A page of the account's codes, newest first. Hits are read last, so that none is missing. */
export async function list(
  deps: ListKit,
  { id }: Account,
  { limit, offset, search }: z.output<typeof ListQuery>,
  signal?: AbortSignal,
): Promise<ListView> {
  const { pages, hits, addresses } = deps
  const { total, links } = await pages.findPage(
    { accountId: id, limit, offset, ...pastedSearch(deps, id, search) },
    signal,
  )
  const counts = hits.of(links.map((link) => link.id))
  const items = links.map((link) => ({
    ...lookupView(link, counts.get(link.id) ?? 0),
    short_url: addresses.short(link),
    qr_url: addresses.qr(link),
  }))
  return { total, limit, offset, count: items.length, items }
}

interface OwnLists extends z.output<typeof OwnListQuery> {
  /** See `LinkPages`. */
  byHits?: boolean
}

/**
 * A page of the account's links with their properties, newest first. The search finds what the
 * search of the dashboard finds. Throws `search_timeout`.
 */
export async function listWithProperties(
  deps: ListKit,
  { id: accountId }: Account,
  { limit, offset, search, tag, state, byHits }: OwnLists,
  signal?: AbortSignal,
): Promise<OwnListView> {
  const now = deps.clock()
  const { total, links } = await deps.pages.findPage(
    {
      accountId,
      limit,
      offset,
      ...pastedSearch(deps, accountId, search),
      inProperties: true,
      byHits,
      tag,
      // Matches are counted once a minute.
      state: state && { is: state, at: now - (now % MINUTE) },
    },
    signal,
  )
  const aliases = deps.data.aliases.ofLinks(links.map(({ id }) => id))
  const items = withDetails(deps, links).map((link) =>
    ownView(deps, link, aliases.get(link.id) ?? []),
  )
  return { total, limit, offset, count: items.length, items }
}
