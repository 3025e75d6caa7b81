import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { issueKey } from '../../src/accounts/keys.ts'
import { secretFile } from '../../src/accounts/secrets.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { MIGRATIONS } from '../../src/db/migrations.gen.ts'
import { databaseFile, inTransaction, openReadonly } from '../../src/db/open.ts'
import { wallClock } from '../../src/lib/clock.ts'
import { newCode } from '../../src/lib/code.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { encodeCreate, type NewLink } from '../../src/links/link.ts'
import { linkWrites } from '../../src/links/put.ts'
import { searchWrites } from '../../src/links/search-index.ts'
import { urlKey } from '../../src/links/url.ts'
import { realisticUrl, seededBytes, seededRandom } from './realistic-urls.ts'
import { TEXT_LENGTH } from './request.ts'
import type { Progress } from './rounds.ts'
import { ACCOUNT_EMAIL, type Link } from './variants.ts'

/** Links of the one account, with the ids 1 to this. */
export const MILLION = 1_000_000
const NAME_START = 'hopcode-bench-million-'
const KEPT_MS = 7 * 24 * 60 * 60 * 1000
/** Increment it when `create` changes the content of the folder. */
const RECIPE = 2
const CHUNK = 10_000
const NO_QUOTA = { linksMax: 0, urlBytesMax: 0 }
export const KEY_FILE = 'bench-api-key'
const SEED = 20_260_301
const FIRST_CREATED_AT = Date.UTC(2024, 0, 1)
const BETWEEN_LINKS_MS = 60_000

/** A data folder with one enterprise account of a million links, and its API key. */
export interface MillionFolder {
  path: string
  apiKey: string
}

/**
 * The original folder: copy it before a service uses it. It is kept with the temporary files from
 * run to run; its name contains a hash of the schema and of the recipe. Creating it takes one to
 * two minutes. `links`: another number of them, a multiple of 10,000.
 */
export function millionFolder(say: Progress, links = MILLION): MillionFolder {
  const path = join(tmpdir(), NAME_START + recipeHash(links))
  if (!existsSync(path)) {
    say(`creating ${links.toLocaleString('en')} links; they are kept for later runs`)
    create(path, links)
  }
  utimesSync(path, new Date(), new Date())
  removeUnused()
  return { path, apiKey: readFileSync(join(path, KEY_FILE), 'utf8') }
}

/** A copy for a service, flushed so that writing it back does not disturb measurements. */
export function copyMillion(from: MillionFolder, into: string): MillionFolder {
  mkdirSync(into, { mode: 0o700 })
  for (const file of [databaseFile(from.path), secretFile(from.path)]) {
    const copy = join(into, basename(file))
    copyFileSync(file, copy)
    const descriptor = openSync(copy, 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
  }
  return { path: into, apiKey: from.apiKey }
}

/** `count` links scattered over all ids: always the same ones, in the same order. */
export function scatteredLinks({ path }: MillionFolder, count: number, links = MILLION): Link[] {
  const db = openReadonly(databaseFile(path), { cacheKiB: 65_536 })
  try {
    // A generated code that is in use, of millions, leaves a gap in the ids.
    const byId = db.prepare<Link, [number]>('SELECT code, url FROM links WHERE id >= ? LIMIT 1')
    return Array.from({ length: count }, (_, n) => {
      const id = scatteredId(n, links)
      const link = byId.get(id)
      if (!link) throw new Error(`${path} has no link from ${id} on`)
      return link
    })
  } finally {
    db.close()
  }
}

/** The codes end to end as a file, for a target's `textsFile`. */
export function writeTexts(file: string, codes: readonly string[]): string {
  const odd = codes.find((code) => code.length !== TEXT_LENGTH)
  if (odd !== undefined) throw new Error(`${odd} is not of ${TEXT_LENGTH} characters`)
  writeFileSync(file, codes.join(''))
  return file
}

/** Coprime to every power of ten, so that steps of this size reach every id once. */
const SCATTER_STEP = 611_953

/** The ids in another order. */
export const scatteredId = (n: number, links = MILLION): number => ((n * SCATTER_STEP) % links) + 1

/** Folders of earlier schemas are 700 MB each. */
function removeUnused(): void {
  for (const name of readdirSync(tmpdir()).filter((file) => file.startsWith(NAME_START))) {
    const path = join(tmpdir(), name)
    const unusedMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
    if (unusedMs > KEPT_MS) rmSync(path, { recursive: true, force: true })
  }
}

function recipeHash(links: number): string {
  const hash = createHash('sha256')
  for (const { sql } of MIGRATIONS) hash.update(sql)
  hash.update(readFileSync(join(import.meta.dir, 'realistic-urls.ts')))
  hash.update([RECIPE, links, SEED, FIRST_CREATED_AT, BETWEEN_LINKS_MS].join())
  return hash.digest('hex').slice(0, 12)
}

function create(path: string, links: number): void {
  // Created under another name and then renamed, so that an incomplete one is never used.
  const beside = mkdtempSync(`${path}-unfinished-`)
  try {
    const { db, accounts, hasher } = openDataFolder(beside)
    // An incomplete folder is discarded, so it needs no syncs.
    db.run('PRAGMA synchronous = OFF')
    db.run('PRAGMA cache_size = -262144')
    const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
    const { key, stored } = issueKey(deps)
    const accountId = accounts.create({
      email: ACCOUNT_EMAIL,
      plan: 'enterprise',
      key: stored,
      now: wallClock(),
    })
    if (accountId === undefined) throw new Error('a new folder has an account already')
    fill(db, accountId, links)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    writeFileSync(join(beside, KEY_FILE), key)
    renameSync(beside, path)
  } catch (error) {
    rmSync(beside, { recursive: true, force: true })
    // Another run may have created it meanwhile.
    if (!existsSync(path)) throw error
  }
}

function fill(db: Database, accountId: number, links: number): void {
  const random = seededRandom(SEED)
  const writes = linkWrites(db)
  const search = searchWrites(db)
  for (let first = 0; first < links; first += CHUNK) {
    const now = FIRST_CREATED_AT + first * BETWEEN_LINKS_MS
    const author = { accountId, by: 'operator', now } as const
    const items = Array.from({ length: CHUNK }, (_, n) => newLink(random, first + n))
    const message = encodeCreate({ author, items, quota: NO_QUOTA })
    inTransaction(db, () => writes.createEncoded(message))
    while (
      inTransaction(db, () =>
        search.indexLinks({ rowsMax: CHUNK, charactersMax: Number.POSITIVE_INFINITY }),
      )
    ) {}
  }
}

function newLink(random: () => number, ordinal: number): NewLink {
  const url = realisticUrl(random, ordinal)
  const bytes = seededBytes(random)
  return { url, urlKey: urlKey(new URL(url)), code: newCode(bytes), passcodeHash: bytes(32) }
}
