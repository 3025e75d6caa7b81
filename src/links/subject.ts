import { packedWrite, subject, write } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { missingRights } from './hand-over.ts'
import { codeScans } from './known-codes.ts'
import { encodeCreate, type Link } from './link.ts'
import { listScans } from './lists.ts'
import { exportScans } from './pieces.ts'
import { LinkReads } from './read.ts'
import { searchAllScans } from './search-all.ts'
import { indexWrites } from './search-index.ts'
import { type Creation, linkWrites } from './store.ts'
import { tagScans } from './tags.ts'

interface ReplacePassword {
  id: number
  /** Hashes. */
  before: string
  after: string
}

/** Links with their properties and aliases. `LinkWriter` turns refusals into errors. */
export const links = subject({
  reads: (db) => Object.assign(new LinkReads(db), { missingRights: missingRights(db) }),

  scans: { ...listScans, ...tagScans, ...exportScans, ...codeScans, ...searchAllScans },

  writes: {
    ...indexWrites,

    /** One result for each link of a batch, in order. */
    create: packedWrite({
      since: 1,
      pack: encodeCreate,
      prepare: (db) => linkWrites(db).createEncoded,
      unpack: (packed: string | undefined): Creation[] | 'not_active' =>
        packed === undefined ? 'not_active' : (JSON.parse(packed) as Creation[]),
      effect(effects, created) {
        if (created === 'not_active') return
        effects.linksCreated(created.filter((link) => typeof link !== 'string'))
      },
    }),

    /** A link with its properties and aliases. */
    createOne: write({
      since: 1,
      prepare: (db) => linkWrites(db).createLink,
      effect(effects, created) {
        if (typeof created === 'string' || 'taken' in created) return
        effects.linksCreated([created.link])
        if (created.aliases) effects.aliasesChanged(created.aliases)
      },
    }),

    changeUrl: write({
      since: 1,
      prepare: (db) => linkWrites(db).changeUrl,
      effect: (effects, changed) => effects.linksChanged(codesOf(changed)),
    }),

    patch: write({
      since: 1,
      prepare: (db) => linkWrites(db).patchLinks,
      effect(effects, patched) {
        if (typeof patched === 'string' || 'taken' in patched) return
        effects.linksChanged(patched.codes)
        effects.addressesChanged(patched.addressed)
        if (patched.aliases) effects.aliasesChanged(patched.aliases)
      },
    }),

    /** Replaces the hash of a link by another one of its password. Null if it has another one. */
    replacePassword: write({
      since: 1,
      prepare(db) {
        const replace = db.prepare<{ code: Code }, [string, number, string]>(
          'UPDATE links SET password = ? WHERE id = ? AND password = ? RETURNING code',
        )
        return ({ id, before, after }: ReplacePassword): Code | null =>
          replace.get(after, id, before)?.code ?? null
      },
      effect: (effects, code) => effects.linksChanged(code === null ? [] : [code]),
    }),

    /** The codes of the links that were moved. */
    handOver: write({
      since: 1,
      prepare: (db) => linkWrites(db).handOver,
      effect: (effects, moved) => effects.linksChanged(codesOf(moved)),
    }),

    delete: write({
      since: 1,
      prepare: (db) => linkWrites(db).deleteLink,
      effect: (effects, deleted) => effects.linksDeleted(codesOf(deleted)),
    }),

    deleteSome: write({
      since: 1,
      prepare: (db) => linkWrites(db).deleteLinksOf,
      effect: (effects, codes) => effects.linksDeleted(codes),
    }),

    scheduleDeletion: write({
      since: 1,
      prepare: (db) => linkWrites(db).scheduleDeletion,
      effect: (effects, scheduled) => effects.linksChanged(codesOf(scheduled)),
    }),

    undoDeletion: write({
      since: 1,
      prepare: (db) => linkWrites(db).undoDeletion,
      effect: (effects, undone) => effects.linksChanged(codesOf(undone)),
    }),

    deleteDue: write({
      since: 1,
      prepare: (db) => linkWrites(db).deleteDue,
      effect: (effects, codes) => effects.linksDeleted(codes),
    }),
  },
})

type Result = Link | readonly Code[] | string | undefined

const isLink = (result: Result): result is Link =>
  typeof result === 'object' && !Array.isArray(result)

/** The codes of a result; none of a refusal, which is a name, or of a link that is gone. */
function codesOf(result: Result): readonly Code[] {
  if (isLink(result)) return [result.code]
  return Array.isArray(result) ? (result as readonly Code[]) : []
}
