import type { Caller } from '../lib/thread.ts'
import { findPage } from './list.ts'
import type { LinkLists, ListQuery } from './lists.ts'
import type { NewestReads } from './newest-store.ts'
import type { LinkRow } from './row.ts'

/** `total` is undefined while it takes longer to count. */
export interface SoonMatches {
  total: number | undefined
  links: LinkRow[]
}

interface SoonOptions {
  lists: Caller<LinkLists>
  reader: Caller<NewestReads>
  /** How long the count may take before the page comes without it. */
  patienceMs: number
}

/**
 * One page of links, soon. Where counting all matches takes longer, the page comes without their
 * number; the count goes on, and who asks again has it.
 */
export async function findSoon(
  { lists, reader, patienceMs }: SoonOptions,
  { search = '', ...query }: ListQuery,
): Promise<SoonMatches> {
  const counted = findPage(lists, { ...query, search })
  if (search === '') return counted
  const patience = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => patience.resolve(undefined), patienceMs)
  try {
    const found = await Promise.race([counted, patience.promise])
    if (found) return found
    // Whoever asks again is told of its failure.
    counted.catch(() => {})
    const links = await reader.call('newestMatches', { ...query, search })
    return { total: undefined, links }
  } finally {
    clearTimeout(timer)
  }
}
