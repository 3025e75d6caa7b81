import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import {
  type AliasChange,
  type AliasPatch,
  type AliasRefusal,
  aliasPatcher,
} from '../addresses/names.ts'
import { domainUses } from '../addresses/use.ts'
import type { Quota } from '../config.ts'
import type { Code } from '../lib/code.ts'
import type { Author, Link } from './link.ts'
import {
  bytesOfProperties,
  cellsOf,
  type LinkProperties,
  NO_PROPERTIES,
  PROPERTY_COLUMNS,
  type PropertiesPatch,
  type PropertiesRow,
  type PropertyName,
  readProperties,
  SET_PROPERTIES,
  startsAfterExpiry,
  TAGS_MAX,
} from './property-table.ts'
import { accountCounts, type QuotaName } from './quota.ts'
import { indexKeeper } from './search-index.ts'

export interface PatchLinks {
  /** Links of other accounts, and those that were deleted, are skipped. */
  ids: readonly number[]
  patch: PropertiesPatch
  /** Only of a single link. */
  aliases?: AliasPatch | undefined
  quota: Quota
  author: Author
}

/** The links that were changed, and which properties of each. */
export interface Patched {
  accountId: AccountId
  links: { id: number; code: Code; changed: PropertyName[] }[]
  aliases?: AliasChange | undefined
}

type Problem = 'bad_times' | 'too_many_tags' | 'bad_domain'
export type PatchRefusal = 'not_active' | Problem | QuotaName | AliasRefusal

/** A link with its properties, as they are stored or will be. */
interface OwnedLink extends Pick<Link, 'id' | 'code' | 'accountId' | 'url'> {
  properties: LinkProperties
}

/** Writes properties of links. Runs on the writer thread, inside the transaction of its batch. */
export function propertyWrites(db: Database) {
  const accounts = accountCounts(db)
  const rows = rowStore(db)
  const aliases = aliasPatcher(db)
  const domains = domainUses(db)

  return {
    /** The changed links, or why none was changed. */
    patchLinks(command: PatchLinks): Patched | PatchRefusal {
      const { ids, patch, quota, author } = command
      if (!accounts.isActive(author)) return 'not_active'
      const names = namesIn(patch)
      const changes = rows.find(ids, author.accountId).map((before) => {
        const after = applyPatch(before, patch)
        return { before, after, changed: changedOf(names, before.properties, after.properties) }
      })
      for (const { before, after } of changes) {
        const problem = findProblem(after.properties, before.properties)
        if (problem) return problem
      }
      const { domain } = patch
      const isUsable = domain === undefined || domains.mayUse(author.accountId, domain)
      if (!isUsable && changes.some(({ changed }) => changed.includes('domain'))) {
        return 'bad_domain'
      }
      const [first] = changes
      const planned = command.aliases && first && aliases.plan(first.before, command.aliases)
      if (planned && (typeof planned === 'string' || 'taken' in planned)) return planned
      const urlBytes = changes.reduce(
        (sum, { before, after }) =>
          sum + bytesOfProperties(after.properties) - bytesOfProperties(before.properties),
        planned?.bytes ?? 0,
      )
      const added = { links: 0, urlBytes }
      const exceeded = accounts.exceededBy(author.accountId, added, quota)
      if (exceeded) return exceeded
      const changedAliases = planned && aliases.apply(planned)
      for (const { after, changed } of changes) {
        rows.save(after, changed)
        if (changedAliases) rows.noteAliases(after)
      }
      accounts.add(author.accountId, added)
      return {
        accountId: author.accountId,
        links: changes.map(({ after: { id, code }, changed }) => ({ id, code, changed })),
        aliases: changedAliases,
      }
    },
  }
}

/** Sets all properties. Triggers on `links` keep the tags, and invalidate counts of lists. */
export function propertySetter(db: Database): (id: number, properties: LinkProperties) => void {
  const set = db.prepare<null, (string | number | null)[]>(
    `UPDATE links SET ${SET_PROPERTIES} WHERE id = ?`,
  )
  return (id, properties) => void set.run(...cellsOf(properties), id)
}

function rowStore(db: Database) {
  const index = indexKeeper(db)
  const byIds = db.prepare<Omit<OwnedLink, 'properties'> & PropertiesRow, [string, AccountId]>(
    `SELECT id, code, account_id AS accountId, url, ${PROPERTY_COLUMNS} FROM links
     WHERE id IN (SELECT value FROM json_each(?1)) AND account_id = ?2 ORDER BY id`,
  )
  const setProperties = propertySetter(db)
  const addChange = db.prepare<null, [AccountId, number]>(
    'INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (?, ?, 0)',
  )
  const removeOldChanges = db.prepare<null, []>(
    'DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096',
  )
  /** Counts of lists change in a way that the triggers on `links` do not see. */
  const noteChange = ({ accountId, id }: OwnedLink) => {
    addChange.run(accountId, id)
    removeOldChanges.run()
  }
  return {
    find: (ids: readonly number[], accountId: AccountId): OwnedLink[] =>
      byIds
        .all(JSON.stringify(ids), accountId)
        .map((row) => ({ ...row, properties: readProperties(row) })),

    save(link: OwnedLink, changed: readonly PropertyName[]): void {
      setProperties(link.id, link.properties)
      const isOneOf = (names: readonly PropertyName[]) => changed.some((one) => names.includes(one))
      if (isOneOf(TEXTS)) index.update(link)
      if (isOneOf(SELECTING)) noteChange(link)
    },

    /** The aliases have changed. */
    noteAliases(link: OwnedLink): void {
      index.update(link)
      noteChange(link)
    },
  }
}

const textOf = (value: unknown): string => JSON.stringify(value)

const TEXTS: readonly PropertyName[] = ['title', 'note', 'tags', 'destinations']
/** What lists select links by, beside the columns that the triggers on `links` watch. */
const SELECTING: readonly PropertyName[] = [
  'paused',
  'starts_at',
  'expires_at',
  'max_hits',
  'destinations',
]

/** The properties that a patch may change. */
const namesIn = ({ addTags, removeTags, tags, ...values }: PropertiesPatch): PropertyName[] => [
  ...(Object.keys(values) as PropertyName[]),
  ...(addTags || removeTags || tags ? (['tags'] as const) : []),
]

const changedOf = (
  names: readonly PropertyName[],
  before: LinkProperties,
  after: LinkProperties,
): PropertyName[] => names.filter((name) => textOf(before[name]) !== textOf(after[name]))

const applyPatch = (link: OwnedLink, patch: PropertiesPatch): OwnedLink => ({
  ...link,
  properties: patchProperties(link.properties, patch),
})

/** Why a link cannot get the properties; undefined if it can. What it had before stays. */
export function findProblem(after: LinkProperties, before = NO_PROPERTIES): Problem | undefined {
  const { starts_at, expires_at, tags } = after
  const hasNewTimes = starts_at !== before.starts_at || expires_at !== before.expires_at
  if (hasNewTimes && startsAfterExpiry(after)) return 'bad_times'
  const hasNewTag = tags.some((tag) => !before.tags.includes(tag))
  return hasNewTag && tags.length > TAGS_MAX ? 'too_many_tags' : undefined
}

export function patchProperties(before: LinkProperties, patch: PropertiesPatch): LinkProperties {
  const { tags = before.tags, addTags = [], removeTags = [], ...values } = patch
  const set = Object.entries(values).filter(([, value]) => value !== undefined)
  const remaining = [...tags, ...addTags].filter((tag) => !removeTags.includes(tag))
  return { ...before, ...Object.fromEntries(set), tags: [...new Set(remaining)].sort() }
}
