import type { Database } from 'bun:sqlite'
import type { AccountId } from '../../src/accounts/store.ts'
import {
  type DataOf,
  openSubjects,
  type Prepare,
  type Subject,
  type Subjects,
  scanFunctions,
  type Write,
  type WriterHost,
  writeFunctions,
} from '../../src/db/subject.ts'
import { functionOf } from '../../src/lib/thread.ts'
import { type CreatedLink, encodeCreate, type NewLink } from '../../src/links/link.ts'
import { linkWrites } from '../../src/links/put.ts'
import { urlKey } from '../../src/links/url.ts'
import type { ListQuery, linkLists, Matches } from '../../src/lists/lists.ts'

type Direct<Of> =
  Of extends Subject<infer Reads, infer Scans, infer Writes>
    ? Reads & {
        [Name in keyof Scans]: Scans[Name] extends Prepare<infer Args, infer Result>
          ? (args: Args) => Result
          : never
      } & {
        [Name in keyof Writes]: Writes[Name] extends Write<infer Command, infer Result>
          ? (command: Command) => Result
          : never
      }
    : never

const ALONE: WriterHost = { id: '' }

/**
 * The operations of a subject as plain functions, on one connection that may write. A write needs a
 * transaction of the caller, tells no reader, and its result stays packed.
 */
export function operationsOn<One extends Subjects[string]>(
  db: Database,
  one: One,
  host = ALONE,
): Direct<One> {
  const { reads, scans, writes } = one
  const context = { ...host, forgetAccount() {} }
  return Object.assign(
    reads(db) as object,
    ...Object.entries(scans).map(([name, prepare]) => ({ [name]: prepare(db) })),
    ...Object.entries(writes).map(([name, declared]) => ({
      [name]: declared.prepare(db, context),
    })),
  ) as Direct<One>
}

/** The operations of subjects as the service has them, all on one connection of this thread. */
export function dataOn<All extends Subjects>(
  db: Database,
  subjects: All,
  host = ALONE,
): DataOf<All> {
  const functions = { ...scanFunctions(subjects, db), ...writeFunctions(subjects, db, host) }
  const call = async (name: string, args: unknown) => functionOf(functions, name)(args)
  return openSubjects(subjects, { db, callReader: call, callWriter: call, readers: [] })
}

const NO_QUOTA = { linksMax: 0, urlBytesMax: 0 }

/** Writes links at the time 0, without quotas, in the name of their account. */
export function plainWrites(db: Database) {
  const { createEncoded, changeUrl, deleteLink } = linkWrites(db)
  const authorOf = (accountId: AccountId) => ({ accountId, by: 'operator', now: 0 }) as const
  return {
    create(accountId: AccountId, items: readonly NewLink[]): CreatedLink[] {
      const command = { author: authorOf(accountId), items, quota: NO_QUOTA }
      return JSON.parse(createEncoded(encodeCreate(command)))
    },
    setUrl: (accountId: AccountId, id: number, url: string) =>
      changeUrl({
        id,
        url,
        urlKey: urlKey(new URL(url)),
        quota: NO_QUOTA,
        author: authorOf(accountId),
      }),
    remove: (accountId: AccountId, id: number) => deleteLink({ id, author: authorOf(accountId) }),
  }
}

/** A page of a list, in as many time slices as it takes. */
export function listLinks(
  lists: Pick<ReturnType<typeof linkLists>, 'listLinksSlice'>,
  query: ListQuery,
): Matches {
  for (;;) {
    const found = lists.listLinksSlice(query)
    if (found) return found
  }
}
