/**
 * The four refusals of a passcode need the same work, so that time does not distinguish them. That
 * they have the same body is in update.test.ts and delete.test.ts.
 */
import { expect, test } from 'bun:test'
import { issueKey } from '../../src/accounts/keys.ts'
import type { Account } from '../../src/accounts/store.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { AppError } from '../../src/errors.ts'
import { wallClock } from '../../src/lib/clock.ts'
import { randomString, secureRandom } from '../../src/lib/random.ts'
import { newPasscode } from '../../src/links/link.ts'
import { LinkReads } from '../../src/links/read.ts'
import { authorizeByPasscode, type UpdateDeps } from '../../src/links/update.ts'
import { urlKey } from '../../src/links/url.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'

const KINDS = ['unknown code', 'foreign code', 'wrong at once', 'wrong at the end'] as const
type Kind = (typeof KINDS)[number]

const LINKS = 50
const CODE_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Two accounts with links. An unknown code is the one directly before the code of a link. */
function createWorld() {
  const folder = temporaryFolderInMemory()
  const { db, accounts, hasher } = openDataFolder(folder.path)
  const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
  const people = ['one', 'other'].map((name) => {
    const { key, stored } = issueKey(deps)
    const email = `${name}@example.com`
    accounts.create({ email, plan: 'enterprise', key: stored, now: 0 })
    return { key, account: accounts.findByEmail(email) as unknown as Account }
  })
  const insert = db.prepare(
    `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)
     VALUES (?, ?, ?, ?, ?, 0)`,
  )
  const links = Array.from({ length: LINKS }, (_, n) => {
    const code = `${randomString(secureRandom, CODE_ALPHABET, 7)}C`
    const passcode = newPasscode(secureRandom)
    const url = `https://example.com/${code}`
    const hash = hasher.hash('passcode', passcode)
    insert.run(code, people[n % 2]?.account.id ?? 0, url, urlKey(new URL(url)), hash)
    return { code, passcode, owner: n % 2 }
  })
  db.close()
  const reader = openReadonly(databaseFile(folder.path), { cacheKiB: 8192 })
  /** Attempts that must be refused as this kind, for each link. */
  const attempts = (kind: Kind) =>
    links.map(({ code, passcode, owner }) => {
      const place = kind === 'wrong at once' ? 0 : passcode.length - 1
      const wrong = passcode[place] === 'A' ? 'B' : 'A'
      return {
        code: kind === 'unknown code' ? `${code.slice(0, 7)}B` : code,
        passcode: passcode.slice(0, place) + wrong + passcode.slice(place + 1),
        by: people[kind === 'foreign code' ? 1 - owner : owner] as (typeof people)[0],
      }
    })
  return {
    dataDir: folder.path,
    reads: new LinkReads(reader),
    hasher,
    attempts,
    [Symbol.dispose]() {
      reader.close()
      folder[Symbol.dispose]()
    },
  }
}

test('every kind of refusal asks the database once and hashes once', () => {
  using world = createWorld()
  const asked: string[] = []
  const noted = <Args extends unknown[], Result>(what: string, work: (...args: Args) => Result) => {
    return (...args: Args): Result => {
      asked.push(what)
      return work(...args)
    }
  }
  const findNearest = noted('look', world.reads.findNearest.bind(world.reads))
  const hash = noted('hash', world.hasher.hash.bind(world.hasher))
  const deps = { reads: { findNearest }, hasher: { hash } } as unknown as UpdateDeps
  for (const kind of KINDS) {
    for (const { code, passcode, by } of world.attempts(kind)) {
      asked.length = 0
      const refused = () => authorizeByPasscode(deps, by.account, code, passcode)
      expect(refused).toThrow(new AppError('invalid_passcode', code))
      expect(asked).toEqual(['look', 'hash'])
    }
  }
})
