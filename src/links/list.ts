import type { z } from 'zod'
import type { Account } from '../accounts/store.ts'
import type { LinkDeps } from './deps.ts'
import { lookupView } from './lookup.ts'
import type { ListQuery, ListView } from './schema.ts'

/**
 * A page of the account's codes, newest first. Their hits are read last, so that none is missing.
 */
export async function list(
  { pages, hits, addresses }: LinkDeps,
  { id }: Account,
  { limit, offset, search }: z.output<typeof ListQuery>,
  signal?: AbortSignal,
): Promise<ListView> {
  const { total, links } = await pages.find({ accountId: id, limit, offset, search }, signal)
  const counts = hits.of(links.map((link) => link.id))
  const items = links.map((link) => ({
    ...lookupView(link, counts.get(link.id) ?? 0),
    short_url: addresses.short(link.code),
    qr_url: addresses.qr(link.code),
  }))
  return { total, limit, offset, count: items.length, items }
}
