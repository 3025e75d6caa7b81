import type { z } from 'zod'
import type { Account } from '../accounts/store.ts'
import type { LinkDeps } from './deps.ts'
import type { ListQuery as LinkListQuery, Matches } from './lists.ts'
import { lookupView } from './lookup.ts'
import type { ListQuery, ListView } from './schema.ts'

/**
 * A page of the account's codes, newest first. Their hits are read last, so that none is missing.
 */
export async function list(
  { lists, hits, addresses }: LinkDeps,
  { id }: Account,
  { limit, offset, search }: z.output<typeof ListQuery>,
): Promise<ListView> {
  const { total, links } = await findPage(lists, { accountId: id, limit, offset, search })
  const counts = hits.of(links.map((link) => link.id))
  const items = links.map((link) => ({
    ...lookupView(link, counts.get(link.id) ?? 0),
    short_url: addresses.short(link.code),
    qr_url: addresses.qr(link.code),
  }))
  return { total, limit, offset, count: items.length, items }
}

/** Enough for 100 million links. Past it, others must have pushed out what was counted so far. */
const SLICES_MAX = 5000

/**
 * One page and its total, exact. A long count goes slice by slice, and the first slice of any other
 * list goes first: so one that has all counts at hand never waits for more than a slice.
 */
export async function findPage(lists: LinkDeps['lists'], query: LinkListQuery): Promise<Matches> {
  for (let slice = 0; slice < SLICES_MAX; slice++) {
    const page = await lists.call('listLinksSlice', query, { background: slice > 0 })
    if (page) return page
  }
  return lists.call('listLinks', query)
}
