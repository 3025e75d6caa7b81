import type { Code } from '../lib/code.ts'

/**
 * What committed writes have changed, for everything that keeps a copy of it or acts on it. Each
 * write declares which of these it reports. A method is called in the tick in which the commit is
 * known and before the write is acknowledged; it must neither wait nor throw.
 */
export interface Effects {
  /** `reused`: the link existed, and its scheduled deletion is canceled. */
  linksCreated(links: readonly { code: Code; domainId: number; reused: boolean }[]): void
  /** By an import. `paths`: their aliases. */
  linksImported(links: readonly { code: Code; paths: readonly string[] }[]): void
  linksChanged(codes: readonly Code[]): void
  /** Their short URLs have another domain. */
  addressesChanged(codes: readonly Code[]): void
  linksDeleted(codes: readonly Code[]): void
  /** `isAnyCase`: one of the aliases that were added or removed answers in any letter case. */
  aliasesChanged(change: { changed: readonly string[]; isAnyCase: boolean }): void
  /** Disabled links or disabled accounts. */
  rulesChanged(): void
  /** By another host of the cluster. */
  hitsAdded(): void
}
