/**
 * Does the response time of a 403 distinguish an unknown code, a code of another account and a
 * wrong passcode? bun scripts/timing-403.ts [--samples N] [--http N] [--sign-in N]: samples of each
 * kind in random order, of authorizeByPasscode() itself, over HTTP, and of the dashboard's sign-in.
 * Prints Welch's t of each pair, with all samples and without the slowest 5 %; fails if the latter
 * is 4.5 or more (Reparaz, Balasch, Verbauwhede: Dude, is my code constant time?, 2017).
 */

import { parseArgs } from 'node:util'
import { issueKey } from '../src/accounts/keys.ts'
import { type PasswordFunctions, Passwords } from '../src/accounts/passwords.ts'
import { SecretHasher } from '../src/accounts/secrets.ts'
import { signIn } from '../src/accounts/sign-in.ts'
import type { Account, AccountStore } from '../src/accounts/store.ts'
import type { Throttle } from '../src/accounts/throttle.ts'
import { openDataFolder } from '../src/data-folder.ts'
import { databaseFile, inTransaction, openReadonly } from '../src/db/open.ts'
import { AppError } from '../src/errors.ts'
import { monotonicClock, wallClock } from '../src/lib/clock.ts'
import { randomString, secureRandom } from '../src/lib/random.ts'
import { Thread } from '../src/lib/thread.ts'
import { newPasscode } from '../src/links/link.ts'
import { LinkReads } from '../src/links/read.ts'
import { authorizeByPasscode, type UpdateDeps } from '../src/links/update.ts'
import { urlKey } from '../src/links/url.ts'
import { KeepAlive } from '../test/durability/lib/keep-alive.ts'
import { Service } from '../test/support/binary.ts'
import { temporaryFolderInMemory } from '../test/support/folder.ts'
import { cropped, welchT } from '../test/support/welch.ts'
export const KINDS = ['unknown code', 'foreign code', 'wrong at once', 'wrong at the end'] as const
export type Kind = (typeof KINDS)[number]

export const T_MAX = 4.5
const KEPT = 0.95
const LINKS = 2000
const WARM_UP = 5000
const CODE_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

export interface Pair {
  names: readonly [string, string]
  t: number
  tCropped: number
  /** The difference of the medians in nanoseconds. */
  differenceNs: number
}

interface Attempt {
  code: string
  passcode: string
  by: Person
}

interface Person {
  key: string
  account: Account
}

export interface World extends Disposable {
  dataDir: string
  deps: Pick<UpdateDeps, 'reads' | 'hasher'>
  /** A new attempt that must be refused as this kind. */
  attempt(kind: Kind): Attempt
}

/**
 * Two accounts with links. All four kinds use the same links (an unknown code is the one directly
 * before the code of a link), so that no kind reads cheaper rows of the database. In each kind both
 * accounts send equally many attempts, because the more active one is answered slightly faster.
 */
export function createWorld(): World {
  const folder = temporaryFolderInMemory()
  const { db, accounts, hasher } = openDataFolder(folder.path)
  const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
  const people = ['one', 'other'].map((name): Person => {
    const { key, stored } = issueKey(deps)
    const email = `${name}@example.com`
    accounts.create({ email, plan: 'enterprise', key: stored, now: 0 })
    return { key, account: accounts.findByEmail(email) as unknown as Account }
  })
  const insert = db.prepare(
    `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)
     VALUES (?, ?, ?, ?, ?, 0)`,
  )
  const links = Array.from({ length: LINKS }, (_, n) => ({
    ownedBy: n % 2,
    code: `${randomString(secureRandom, CODE_ALPHABET, 7)}C`,
    passcode: newPasscode(secureRandom),
  }))
  inTransaction(db, () => {
    for (const { code, passcode, ownedBy } of links) {
      const url = `https://example.com/${code}`
      const hash = hasher.hash('passcode', passcode)
      insert.run(code, (people[ownedBy] as Person).account.id, url, urlKey(new URL(url)), hash)
    }
  })
  db.close()
  const reader = openReadonly(databaseFile(folder.path), { cacheKiB: 8192 })
  return {
    dataDir: folder.path,
    deps: { reads: new LinkReads(reader), hasher },
    attempt(kind) {
      const link = links[Math.floor(Math.random() * LINKS)] as (typeof links)[0]
      const { code, passcode, ownedBy } = link
      return {
        code: changed(code, 7, kind === 'unknown code' ? 'B' : 'C'),
        passcode: changed(passcode, kind === 'wrong at once' ? 0 : passcode.length - 1),
        by: people[kind === 'foreign code' ? 1 - ownedBy : ownedBy] as Person,
      }
    },
    [Symbol.dispose]() {
      reader.close()
      folder[Symbol.dispose]()
    },
  }
}

/**
 * The text with another character at `place`. Built from bytes, because concatenated or reused
 * strings take a different time.
 */
function changed(text: string, place: number, to = text[place] === 'A' ? 'B' : 'A'): string {
  const bytes = Buffer.from(text)
  bytes.write(to, place)
  return bytes.toString('latin1')
}

/** Takes `each` samples of each kind in random order. `run` returns nanoseconds. */
export async function sample<Name extends string>(
  kinds: readonly Name[],
  each: number,
  run: (kind: Name) => number | Promise<number>,
): Promise<Map<Name, Float64Array>> {
  const taken = new Map(kinds.map((kind) => [kind, { values: new Float64Array(each), length: 0 }]))
  const open = [...kinds]
  while (open.length > 0) {
    const kind = open[Math.floor(Math.random() * open.length)] as Name
    const got = run(kind)
    const ns = typeof got === 'number' ? got : await got
    const of = taken.get(kind) as { values: Float64Array; length: number }
    of.values[of.length++] = ns
    if (of.length === each) open.splice(open.indexOf(kind), 1)
  }
  return new Map([...taken].map(([kind, { values }]) => [kind, values]))
}

export function comparePairs(samples: ReadonlyMap<string, Float64Array>): Pair[] {
  const names = [...samples.keys()]
  return names.flatMap((one, i) =>
    names.slice(i + 1).map((other) => {
      const both = [samples.get(one), samples.get(other)] as [Float64Array, Float64Array]
      const [a, b] = cropped(both, KEPT) as [Float64Array, Float64Array]
      const differenceNs = median(both[0]) - median(both[1])
      return {
        names: [one, other] as const,
        t: welchT(...both),
        tCropped: welchT(a, b),
        differenceNs,
      }
    }),
  )
}

const median = (values: Float64Array) => values.toSorted()[values.length >> 1] ?? Number.NaN

/** Nanoseconds of one refusal by authorizeByPasscode(). Throws unless it is refused as expected. */
export function timeRefusal(world: World, kind: Kind): number {
  const { code, passcode, by } = world.attempt(kind)
  const start = Bun.nanoseconds()
  try {
    authorizeByPasscode(world.deps, by.account, code, passcode)
  } catch (error) {
    const ns = Bun.nanoseconds() - start
    if (error instanceof AppError && error.code === 'invalid_passcode') return ns
    throw error
  }
  throw new Error(`${kind} was let in`)
}

function report(title: string, pairs: readonly Pair[]): boolean {
  console.log(
    `\n${title}\n| | t | t, 5 % cropped | medians apart, ns |\n| --- | ---: | ---: | ---: |`,
  )
  for (const { names, t, tCropped, differenceNs } of pairs) {
    const cells = [t.toFixed(2), tCropped.toFixed(2), differenceNs.toFixed(0)]
    console.log(`| ${names.join(' / ')} | ${cells.join(' | ')} |`)
  }
  return pairs.every(({ tCropped }) => Math.abs(tCropped) < T_MAX)
}

/** The body of a 403 on its own connection, and the nanoseconds until its arrival. */
export async function askService(
  client: KeepAlive,
  world: World,
  kind: Kind,
): Promise<{ body: string; code: string; ns: number }> {
  const { code, passcode, by } = world.attempt(kind)
  const body = JSON.stringify({ code, passcode })
  const headers = [`X-API-Key: ${by.key}`, 'Content-Type: application/json']
  const start = Bun.nanoseconds()
  const answer = await client.ask('POST', '/api/delete', headers, body)
  const ns = Bun.nanoseconds() - start
  if (answer.status !== 403) throw new Error(`${kind}: ${answer.status} ${answer.body}`)
  return { body: answer.body, code, ns }
}

async function sampleHttp(world: World, each: number): Promise<Map<Kind, Float64Array>> {
  const env = { DATA_DIR: world.dataDir, ENTERPRISE_WRITES_PER_MINUTE: '0' }
  await using service = await Service.start(env)
  const client = await KeepAlive.open(service.url)
  const run = async (kind: Kind) => (await askService(client, world, kind)).ns
  await sample(KINDS, WARM_UP, run)
  const taken = await sample(KINDS, each, run)
  client.close()
  return taken
}

/** Of the operation itself: over HTTP, the throttle would refuse all after five. */
async function sampleSignIn(each: number): Promise<Map<string, Float64Array>> {
  const passwords = new Passwords({
    start: () =>
      Thread.start<PasswordFunctions>(
        new Worker(new URL('../src/threads/passwords.ts', import.meta.url)),
        {},
        { batchMax: 1, queueMax: 10 },
      ),
    // The rate limit of password verification would make sampling slow.
    time: { monotonic: monotonicClock, sleep: async () => {} },
  })
  const passwordHash = await passwords.hash('seven purple otters', { queue: 'trusted', key: '' })
  const deps = {
    passwords,
    hasher: new SecretHasher(Buffer.alloc(32)),
    throttle: {
      require() {},
      hooks: () => ({ before() {}, after() {} }),
    } as unknown as Throttle,
    accounts: {
      findByEmail: (email: string) =>
        email === 'known@example.com' ? { passwordHash } : undefined,
    } as unknown as AccountStore,
  }
  const run = async (name: 'unknown' | 'known') => {
    const input = {
      email: `${name}@example.com`,
      password: 'wrong password',
      address: '',
      deviceToken: undefined,
    }
    const start = Bun.nanoseconds()
    if (await signIn(deps, input)) throw new Error('it was let in')
    return Bun.nanoseconds() - start
  }
  await sample(['unknown', 'known'], 5, run)
  const taken = await sample(['unknown', 'known'], each, run)
  await passwords.close()
  return taken
}

async function main(): Promise<void> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { values } = parseArgs({
    options: { samples: text('100000'), http: text('100000'), 'sign-in': text('200') },
  })
  using world = createWorld()
  const run = (kind: Kind) => timeRefusal(world, kind)
  await sample(KINDS, WARM_UP, run)
  const isEqual = [
    report('authorizeByPasscode()', comparePairs(await sample(KINDS, Number(values.samples), run))),
    report('HTTP', comparePairs(await sampleHttp(world, Number(values.http)))),
    report('sign-in', comparePairs(await sampleSignIn(Number(values['sign-in'])))),
  ]
  if (!isEqual.every(Boolean)) process.exitCode = 1
}

if (import.meta.main) await main()
