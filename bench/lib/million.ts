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
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { issueKey } from '../../src/accounts/keys.ts'
import { secretFile } from '../../src/accounts/secrets.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'
import { databaseFile, inTransaction, openReadonly } from '../../src/db/open.ts'
import { wallClock } from '../../src/lib/clock.ts'
import { type RandomBytes, secureRandom } from '../../src/lib/random.ts'
import { newCode } from '../../src/links/code.ts'
import { linkWrites, type NewLink } from '../../src/links/store.ts'
import { urlKey } from '../../src/links/url.ts'
import type { Progress } from './rounds.ts'
import type { Link } from './variants.ts'

/** Links of the one account, with the ids 1 to this. */
export const MILLION = 1_000_000
const CHUNK = 10_000
const KEY_FILE = 'bench-api-key'
const SEED = 20_260_301
const FIRST_CREATED_AT = Date.UTC(2024, 0, 1)
const BETWEEN_LINKS_MS = 60_000

/** A data folder with one enterprise account of a million links, and its API key. */
export interface MillionFolder {
  path: string
  apiKey: string
}

/**
 * The folder itself, which no service may run on: copy it. It is kept among the temporary files
 * from run to run under a name that holds the hash of the schema and of this file; making it takes
 * about a minute.
 */
export function millionFolder(say: Progress): MillionFolder {
  const path = join(tmpdir(), `hopcode-bench-million-${recipeHash()}`)
  if (!existsSync(path)) {
    say('making 1,000,000 links; they are kept for later runs')
    make(path)
  }
  return { path, apiKey: readFileSync(join(path, KEY_FILE), 'utf8') }
}

/** A copy that a service may run on, flushed so that its writing disturbs nothing measured. */
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

/** `count` links of a folder, scattered over all its ids: always the same ones, in this order. */
export function scatteredLinks({ path }: MillionFolder, count: number, first = 0): Link[] {
  const db = openReadonly(databaseFile(path), { cacheKiB: 65_536 })
  try {
    const byId = db.prepare<Link, [number]>('SELECT code, url FROM links WHERE id = ?')
    return Array.from({ length: count }, (_, n) => {
      const link = byId.get(scatteredId(first + n))
      if (!link) throw new Error(`${path} has no link ${scatteredId(first + n)}`)
      return link
    })
  } finally {
    db.close()
  }
}

/** Prime to a million, so that the steps of this size meet every id once. */
const SCATTER_STEP = 611_953

const scatteredId = (n: number): number => ((n * SCATTER_STEP) % MILLION) + 1

function recipeHash(): string {
  const hash = createHash('sha256')
  for (const { sql } of MIGRATIONS) hash.update(sql)
  return hash.update(readFileSync(import.meta.path)).digest('hex').slice(0, 12)
}

function make(path: string): void {
  // Beside its place, so that one that was cut short is never taken for whole.
  const beside = mkdtempSync(`${path}-unfinished-`)
  try {
    const { db, accounts, hasher } = openDataFolder(beside)
    // The speed of making it is nobody's figure, and a half-made one is thrown away.
    db.run('PRAGMA synchronous = OFF')
    db.run('PRAGMA cache_size = -262144')
    const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
    const { key, stored } = issueKey(deps)
    const accountId = accounts.create('bench@example.com', 'enterprise', stored, wallClock())
    if (accountId === undefined) throw new Error('a new folder has an account already')
    fill(db, accountId)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    writeFileSync(join(beside, KEY_FILE), key)
    renameSync(beside, path)
  } catch (error) {
    rmSync(beside, { recursive: true, force: true })
    // Another run may have made it meanwhile.
    if (!existsSync(path)) throw error
  }
}

function fill(db: Database, accountId: number): void {
  const random = seededRandom(SEED)
  const writes = linkWrites(db, seededBytes(random))
  for (let first = 0; first < MILLION; first += CHUNK) {
    const createdAt = FIRST_CREATED_AT + first * BETWEEN_LINKS_MS
    const items = Array.from({ length: CHUNK }, (_, n) => newLink(random, first + n))
    inTransaction(db, () => writes.createLinks({ accountId, createdAt, items }))
  }
}

function newLink(random: () => number, ordinal: number): NewLink {
  const url = realisticUrl(random, ordinal)
  const bytes = seededBytes(random)
  return { url, urlKey: urlKey(url), code: newCode(bytes), passcodeHash: bytes(32) }
}

/**
 * Addresses as people shorten them: a shop's with campaign parameters, an article's, a document's.
 * The ordinal makes each another one.
 */
export function realisticUrl(random: () => number, ordinal: number): string {
  const word = () => WORDS[Math.floor(random() * WORDS.length)]
  const tag = ordinal.toString(36).padStart(5, '0')
  // Squared, so that a few hosts have most of the links.
  const host = `${WORDS[Math.floor(random() ** 2 * WORDS.length)]}-${word()}.example`
  const kind = random()
  if (kind < 0.4) {
    const campaign = `utm_source=${word()}&utm_medium=email&utm_campaign=${word()}-${word()}`
    return `https://shop.${host}/products/${word()}-${word()}?item=${tag}&${campaign}`
  }
  if (kind < 0.8) {
    const day = 1 + Math.floor(random() * 28)
    return `https://www.${host}/2025/06/${day}/${word()}-${word()}-${word()}-${word()}-${tag}.html`
  }
  const id = Math.floor(random() * 2 ** 48).toString(16)
  return `https://${host}/${word()}/d/${tag}${id}/view#${word()}`
}

/** Mulberry32 by Tommy Ettinger: evenly spread numbers from 0 to below 1, the same for a seed. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const seededBytes =
  (random: () => number): RandomBytes =>
  (length) =>
    Uint8Array.from({ length }, () => random() * 256)

const WORDS = `
  amber anchor apple april arrow autumn bamboo basket beacon berry birch blossom bottle branch bread
  bridge bright bronze brook button cabin camera candle canvas canyon carpet castle cedar cherry
  circle citrus cloud clover coast cobalt coffee copper coral cotton cradle crystal daily dancer
  desert dolphin dragon early eagle echo ember emerald engine evening falcon feather fern field
  finch flame forest fountain fresh frost galaxy garden ginger glacier golden granite grape guitar
  harbor harvest hazel heather helmet honey horizon indigo island ivory jacket jasmine journey
  juniper kettle kitchen ladder lantern laurel lavender lemon lily linen lotus lunar magnet mango
  maple marble meadow melody mirror misty modern monday mountain music nectar needle north nutmeg
  oak ocean olive onyx orange orchard orchid paddle palm paper parade pearl pebble pepper piano
  pillow pine planet plum pocket poppy prairie quartz quiet rabbit rain raven ribbon river rocket
  rose saffron sail salmon sand scarlet season shadow silver simple sky snow solar spring spruce
  stone storm summer sunset swift table teal thunder tiger timber travel tulip tunnel turtle valley
  velvet violet walnut water weekly willow window winter wonder yellow zephyr
`
  .trim()
  .split(/\s+/)
