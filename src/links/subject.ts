import type { Author } from '../db/author.ts'
import { RULES_CHANGED } from '../db/events.ts'
import { authoredWrite, packedWrite, subject, write } from '../db/subject.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { creationEvent, linkEvent, namesOf } from './events.ts'
import { missingRights } from './hand-over.ts'
import { codeScans } from './known-codes.ts'
import { encodeCreate, type NamedLink } from './link.ts'
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
      least: 'editor',
      pack: encodeCreate,
      prepare: (db) => linkWrites(db).createEncoded,
      unpack: (packed: string) => JSON.parse(packed) as Creation[],
      events(created, message) {
        const author = message?.author
        const links = created.filter((link) => typeof link !== 'string')
        return links.map((link) => creationEvent(link, { author }))
      },
    }),

    /** A link with its properties and aliases. */
    createOne: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).createLink,
      events(created, command) {
        if (typeof created === 'string' || 'taken' in created) return []
        const { link, aliases } = created
        return [creationEvent(link, { author: command?.author, addresses: aliases?.changed })]
      },
    }),

    changeUrl: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).changeUrl,
      events(result, command) {
        if (typeof result !== 'object') return []
        const { link, before } = result
        const url = { before, after: link.url }
        const changed = before === link.url ? [] : ['url']
        return [linkEvent('changed', link, { changed, url, author: command?.author })]
      },
    }),

    patch: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).patchLinks,
      events(patched, command) {
        if (typeof patched === 'string' || 'taken' in patched) return []
        const { accountId, links, aliases } = patched
        const names = namesOf(aliases)
        return links.map(({ id, code, changed, url }) =>
          linkEvent(
            'changed',
            { id, code, accountId },
            {
              changed: [...(url ? ['url'] : []), ...changed, ...names],
              url,
              addresses: aliases?.changed,
              author: command?.author,
            },
          ),
        )
      },
    }),

    replacePassword: write({
      prepare: (db) => linkWrites(db).replacePassword,
      events: (link) => (link ? [linkEvent('changed', link, {})] : []),
    }),

    /** Gives links and aliases of a domain to the primary one. */
    leaveDomain: authoredWrite('owner', {
      prepare: (db) => linkWrites(db).leaveDomain,
      events: ({ links, aliases }, command) => [
        ...links.map((link) =>
          linkEvent('changed', link, { changed: ['domain'], author: command?.author }),
        ),
        ...aliases.map(({ path, ...link }) =>
          linkEvent('changed', link, {
            author: command?.author,
            addresses: [{ domainId: PRIMARY_ID, path }],
            changed: ['aliases', 'domain_aliases'],
          }),
        ),
        ...(aliases.length > 0 ? RULES_CHANGED : []),
      ],
    }),

    /** The links that were moved. */
    handOver: authoredWrite('admin', {
      prepare: (db) => linkWrites(db).handOver,
      events(result, command) {
        if (typeof result === 'string') return []
        return result.map(({ fromAccountId, ...link }) => ({
          ...linkEvent('changed', link, { author: command?.author }),
          kind: 'moved' as const,
          fromAccountId,
        }))
      },
    }),

    delete: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).deleteLink,
      events(link, command) {
        if (!link) return []
        const url = { before: link.url, after: null }
        return [linkEvent('deleted', link, { url, author: command?.author })]
      },
    }),

    deleteSome: write({
      prepare: (db) => linkWrites(db).deleteLinksOf,
      events: (links) => links.map((link) => linkEvent('deleted', link, {})),
    }),

    scheduleDeletion: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).scheduleDeletion,
      events: (links, command) => deletionTimeEvents('changed', links, command),
    }),

    undoDeletion: authoredWrite('editor', {
      prepare: (db) => linkWrites(db).undoDeletion,
      events: (links, command) => deletionTimeEvents('restored', links, command),
    }),

    deleteDue: write({
      prepare: (db) => linkWrites(db).deleteDue,
      events: (links, command) =>
        links.map((link) => linkEvent('deleted', link, { at: command?.now })),
    }),
  },
})

const deletionTimeEvents = (
  kind: 'changed' | 'restored',
  links: readonly NamedLink[],
  command: { author: Author } | undefined,
) => {
  const about = { changed: ['delete_at'], author: command?.author }
  return links.map((link) => linkEvent(kind, link, about))
}
