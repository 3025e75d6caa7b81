import { isOnPrimary, smallPath } from '../addresses/address.ts'
import type { AliasChange } from '../addresses/names.ts'
import type { EventReader, LinkEvent } from '../db/events.ts'
import type { CodeVersions } from '../hot/code-versions.ts'
import { toCode } from '../lib/code.ts'
import type { HitLimits } from './destination.ts'
import type { KnownCodes } from './known-codes.ts'
import type { CreatedLink, NamedLink } from './link.ts'

/** What an event tells beside its kind and its link. */
interface About {
  addresses?: LinkEvent['addresses'] | undefined
  author?: LinkEvent['author']
  at?: LinkEvent['at']
  changed?: LinkEvent['changed']
  url?: LinkEvent['url']
}

type PlainKind = 'changed' | 'disabled' | 'enabled' | 'deleted' | 'restored' | 'dead' | 'alive'

const NONE: readonly never[] = []

export const linkEvent = <Kind extends PlainKind>(
  kind: Kind,
  { id, code, accountId }: NamedLink,
  { addresses = NONE, changed = NONE, url, author, at }: About,
) => ({
  what: 'link' as const,
  kind,
  accountId,
  linkId: id,
  code,
  addresses,
  changed,
  url,
  author,
  at,
})

/** Of a link that was created, or that the account had for the URL. */
export function creationEvent(
  link: NamedLink & Pick<CreatedLink, 'domainId' | 'reused' | 'restored'> & { url?: string | null },
  { addresses = NONE, author, isImported = false }: About & { isImported?: boolean },
): LinkEvent {
  if (link.restored) return linkEvent('restored', link, { changed: ['delete_at'], author })
  const { id, code, accountId, domainId, url } = link
  return {
    what: 'link',
    kind: link.reused ? 'found' : 'created',
    accountId,
    linkId: id,
    code,
    domainId,
    isImported,
    addresses,
    changed: NONE,
    url: link.reused || url === undefined ? undefined : { before: null, after: url },
    author,
  }
}

/** The properties of the API that a change of aliases concerns. */
export const namesOf = (aliases: AliasChange | undefined): string[] => [
  ...(aliases?.changed.some(isOnPrimary) ? ['aliases'] : []),
  ...(aliases?.changed.some((one) => !isOnPrimary(one)) ? ['domain_aliases'] : []),
  ...(aliases?.isDisplaySet ? ['display_alias'] : []),
]

interface Caches {
  versions: Pick<CodeVersions, 'change' | 'changeAll'>
  codes: Pick<KnownCodes, 'add'>
  hitLimits: Pick<HitLimits, 'drop' | 'clear'>
}

/** What redirects of every thread keep about links is read again after a change. */
export const cacheReader =
  ({ versions, codes, hitLimits }: Caches): EventReader =>
  (events) => {
    for (const event of events) {
      if (event.what === 'rules_changed') versions.changeAll()
      else if (event.what === 'hits_added') hitLimits.clear()
      else if (event.what === 'link') {
        const { kind, code } = event
        // Also of a link that existed: the result of the commit that created it may have been lost.
        if (kind === 'created' || kind === 'found' || kind === 'restored') codes.add(code)
        versions.change(code)
        hitLimits.drop(code)
        // Not needed for those of a deleted link: a cache finds no link with the same id.
        for (const { path } of event.addresses) {
          codes.add(path)
          const small = smallPath(path)
          if (small !== path) codes.add(small)
          const folded = toCode(path)
          if (folded !== undefined) codes.add(folded)
          versions.change(path)
        }
      }
    }
  }

/** New links are indexed when no write waits. */
export const indexReader =
  (indexer: { wake(): void }): EventReader =>
  (events) => {
    if (events.some((event) => 'domainId' in event)) indexer.wake()
  }
