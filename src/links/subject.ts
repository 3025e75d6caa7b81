import { RULES_CHANGED } from '../db/events.ts'
import { packedWrite, subject, write } from '../db/subject.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { creationEvent, linkEvent, namesOf } from './events.ts'
import { missingRights } from './hand-over.ts'
import { codeScans } from './known-codes.ts'
import { type Author, encodeCreate, type NamedLink } from './link.ts'
import { type Creation, linkWrites } from './put.ts'
import { LinkReads } from './read.ts'
import { indexWrites } from './search-index.ts'

/** Links with their properties and aliases. `LinkWriter` turns refusals into errors. */
export const links = subject({
  reads: (db) => Object.assign(new LinkReads(db), { missingRights: missingRights(db) }),

  scans: codeScans,

  writes: {
    ...indexWrites,

    /** One result for each link of a batch, in order. */
    create: packedWrite({
      pack: encodeCreate,
      prepare: (db) => linkWrites(db).createEncoded,
      unpack: (packed: string | undefined): Creation[] | 'not_active' =>
        packed === undefined ? 'not_active' : (JSON.parse(packed) as Creation[]),
      events(created, message) {
        if (created === 'not_active') return []
        const author = message && { keyId: message.keyId, now: message.createdAt }
        const links = created.filter((link) => typeof link !== 'string')
        return links.map((link) => creationEvent(link, { author }))
      },
    }),

    /** A link with its properties and aliases. */
    createOne: write({
      prepare: (db) => linkWrites(db).createLink,
      events(created, command) {
        if (typeof created === 'string' || 'taken' in created) return []
        const author = command && { keyId: command.keyId, now: command.createdAt }
        return [creationEvent(created.link, { author, addresses: created.aliases?.changed })]
      },
    }),

    changeUrl: write({
      prepare: (db) => linkWrites(db).changeUrl,
      events(result, command) {
        if (typeof result !== 'object') return []
        const { link, before } = result
        const url = { before, after: link.url }
        const changed = before === link.url ? [] : ['url']
        return [linkEvent('changed', link, { changed, url, author: command?.author })]
      },
    }),

    patch: write({
      prepare: (db) => linkWrites(db).patchLinks,
      events(patched, command) {
        if (typeof patched === 'string' || 'taken' in patched) return []
        const { accountId, links, aliases } = patched
        const names = namesOf(aliases)
        const events = links.map(({ id, code, changed }) =>
          linkEvent(
            'changed',
            { id, code, accountId },
            {
              changed: [...changed, ...names],
              addresses: aliases?.changed,
              author: command?.author,
            },
          ),
        )
        // Caches hold an alias in any case in other cases too.
        return aliases?.isAnyCase ? [...events, ...RULES_CHANGED] : events
      },
    }),

    replacePassword: write({
      prepare: (db) => linkWrites(db).replacePassword,
      events: (link) => (link ? [linkEvent('changed', link, {})] : []),
    }),

    /** Gives links and aliases of a domain to the primary one. */
    leaveDomain: write({
      prepare: (db) => linkWrites(db).leaveDomain,
      events: ({ links, aliases }) => [
        ...links.map((link) => linkEvent('changed', link, { changed: ['domain'] })),
        ...aliases.map(({ path, ...link }) =>
          linkEvent('changed', link, {
            addresses: [{ domainId: PRIMARY_ID, path }],
            changed: ['aliases', 'domain_aliases'],
          }),
        ),
        // One of the aliases may answer in any case.
        ...(aliases.length > 0 ? RULES_CHANGED : []),
      ],
    }),

    /** The links that were moved. */
    handOver: write({
      prepare: (db) => linkWrites(db).handOver,
      events(result, command) {
        if (typeof result === 'string') return []
        const author = command && { personId: command.by }
        return result.map(({ fromAccountId, ...link }) => ({
          ...linkEvent('changed', link, { author }),
          kind: 'moved' as const,
          fromAccountId,
        }))
      },
    }),

    delete: write({
      prepare: (db) => linkWrites(db).deleteLink,
      events(link, command) {
        if (typeof link !== 'object') return []
        const url = { before: link.url, after: null }
        return [linkEvent('deleted', link, { url, author: command?.author })]
      },
    }),

    deleteSome: write({
      prepare: (db) => linkWrites(db).deleteLinksOf,
      events: (links) => links.map((link) => linkEvent('deleted', link, {})),
    }),

    scheduleDeletion: write({
      prepare: (db) => linkWrites(db).scheduleDeletion,
      events: (links, command) => deletionTimeEvents('changed', links, command),
    }),

    undoDeletion: write({
      prepare: (db) => linkWrites(db).undoDeletion,
      events: (links, command) => deletionTimeEvents('restored', links, command),
    }),

    deleteDue: write({
      prepare: (db) => linkWrites(db).deleteDue,
      events: (links) => links.map((link) => linkEvent('deleted', link, {})),
    }),
  },
})

const deletionTimeEvents = (
  kind: 'changed' | 'restored',
  links: readonly NamedLink[] | 'not_active',
  command: { author: Author } | undefined,
) => {
  const about = { changed: ['delete_at'], author: command?.author }
  return links === 'not_active' ? [] : links.map((link) => linkEvent(kind, link, about))
}
