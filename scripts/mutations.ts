/**
 * Do the tests notice the faults that matter most? Puts each fault into a copy of the tree and runs
 * the test that must fail: bun scripts/mutations.ts [name ...]. Exits with 1 if a fault is missed.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/folder.ts'

export interface Mutation {
  name: string
  /** A text that its file contains once, and what replaces it. */
  edits: readonly (readonly [file: string, text: string, replacement: string])[]
  /** The test file that must fail, and a part of the titles to run. */
  test: string
  title?: string
  env?: Record<string, string>
}

const CLUSTER = 'test/durability/cluster.test.ts'
const CLUSTER_ROUNDS = { CLUSTER_ROUNDS: '30' }

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'unsynced-commits',
    edits: [
      [
        'src/db/open.ts',
        `db.run('PRAGMA synchronous = FULL')`,
        `db.run('PRAGMA synchronous = NORMAL')`,
      ],
      ['src/db/open.ts', 'synchronous: 2,', 'synchronous: 1,'],
    ],
    test: 'test/durability/power-loss.test.ts',
    title: 'no acknowledged write is lost',
    env: { POWER_LOSS_ROUNDS: '1', POWER_LOSS_TORN_DISKS: '0' },
  },
  {
    name: 'position-in-another-transaction',
    edits: [['src/hits/store.ts', 'advance(end)', 'queueMicrotask(() =>     advance(end))']],
    test: 'src/hits/hits.test.ts',
  },
  {
    name: 'plain-journal-head',
    edits: [
      [
        'src/hot/journal-appender.ts',
        'if (Atomics.compareExchange(ring, HEAD, ticket, next) !== ticket) continue',
        'if ((ring[HEAD] = next) !== next) continue',
      ],
    ],
    test: 'src/hot/journal-appender.test.ts',
    title: 'threads that append at the same time',
  },
  {
    name: 'leftmost-forwarded-address',
    edits: [['src/hot/client-address.ts', 'if (!this.#isTrusted(address)) return found', '']],
    test: 'src/hot/client-address.test.ts',
  },
  {
    name: 'hosts-with-a-final-dot',
    edits: [
      [
        'src/blocklist/match.ts',
        'while (end > 0 && hostname.charCodeAt(end - 1) === DOT) end--',
        'while (end < 0 && hostname.charCodeAt(end - 1) === DOT) end--',
      ],
    ],
    test: 'src/blocklist/watch.evasion.test.ts',
  },
  {
    name: 'plain-text-secrets',
    edits: [
      [
        'src/accounts/secrets.ts',
        '.digest()',
        '.digest().fill(secret, 0, Math.min(secret.length, 32))',
      ],
    ],
    test: 'test/e2e/no-secrets-at-rest.test.ts',
  },
  {
    name: 'bodies-of-any-size',
    edits: [
      [
        'src/http/body.ts',
        'export const SMALL_BODY_MAX = 64 * KIB',
        'export const SMALL_BODY_MAX = 64_000 * KIB',
      ],
    ],
    test: 'test/durability/raw-sockets.test.ts',
    title: 'over 64 KiB',
  },
  {
    name: 'open-beside-connections',
    edits: [
      [
        'src/db/open.ts',
        'db = new Database(file, { create: true',
        'refuseForeignFile(file); db = new Database(file, { create: true',
      ],
    ],
    test: 'test/durability/program.test.ts',
    title: 'another program that opens and closes',
  },
  {
    name: 'hits-without-a-position',
    edits: [
      ['src/hits/shared-store.ts', 'if (countedOf(db, host, journalId) !== from) return false', ''],
    ],
    test: 'src/hits/shared-store.test.ts',
  },
  {
    name: 'refuse-with-old-data',
    edits: [['src/db/writer.ts', 'await this.catchUp()', '']],
    test: 'test/cluster/refusals.test.ts',
  },
  {
    name: 'first-digest-wins',
    edits: [
      [
        'src/cluster/comparison.ts',
        'digests.filter((one) => one === digest).length > (digests.length + missing) / 2',
        'digest === digests[0]',
      ],
    ],
    test: 'test/cluster/differences.test.ts',
    title: 'the first to compare',
  },
  {
    name: 'digests-of-keys',
    edits: [
      [
        'src/cluster/rows.ts',
        'const text = columns.map(',
        'const text = columns.filter(({ pk }) => pk > 0).map(',
      ],
    ],
    test: 'test/cluster/differences.test.ts',
    title: 'changed by hand',
  },
  {
    name: 'start-beside-the-original',
    edits: [
      [
        'src/cluster/log.ts',
        'if (!row || Number(row.own) === 0) throw row?.boot ? new HostInUse() : new HostRemoved()',
        'if (!row || Number(row.own) === 0) throw row?.boot ? new Error() : new HostRemoved()',
      ],
    ],
    test: 'test/cluster/differences.test.ts',
    title: 'a copied data folder',
  },
  {
    name: 'append-twice',
    edits: [
      [
        'src/cluster/shared-order.ts',
        'log.append(entry, deadline, ms),',
        'log.append({ ...entry, batch: crypto.randomUUID() }, deadline, ms),',
      ],
    ],
    test: CLUSTER,
    env: { ...CLUSTER_ROUNDS, CLUSTER_FAULT: 'answers of PostgreSQL lost' },
  },
  {
    name: 'append-without-a-deadline',
    edits: [
      [
        'src/cluster/shared-order.ts',
        'const deadline = log.deadlineAfter(ms)',
        'const deadline = log.deadlineAfter(1e9)',
      ],
    ],
    test: 'test/durability/cluster-outage.test.ts',
  },
  {
    name: 'one-position-of-hits',
    edits: [
      [
        'src/hits/shared-store.ts',
        'if (countedOf(db, host, journalId) !== from) return false',
        `if (countedOf(db, '', '') !== from) return false`,
      ],
      [
        'src/hits/shared-store.ts',
        'setPosition.run(host, journalId, end)',
        `setPosition.run('', '', end)`,
      ],
    ],
    test: CLUSTER,
    env: CLUSTER_ROUNDS,
  },
  {
    name: 'redraw-at-random',
    edits: [
      [
        'src/links/store.ts',
        'return newCode((length) => digest.subarray(0, length))',
        'return newCode((length) => crypto.getRandomValues(new Uint8Array(length)))',
      ],
    ],
    test: CLUSTER,
    env: CLUSTER_ROUNDS,
  },
]

const ROOT = join(import.meta.dir, '..')
const COPIED = ['src', 'drizzle', 'scripts', 'test', 'docs', 'package.json', 'tsconfig.json']

/** The text with the fault. Throws if it does not contain what changes exactly once. */
export function edited(text: string, [file, from, to]: Mutation['edits'][number]): string {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`)
  return parts.join(to)
}

export interface TestRun {
  failed: boolean
  /** No test could run, for example because a file cannot be loaded. */
  broken: boolean
  output: string
}

/** What a run of `bun test` says about its tests. Throws if there were none. */
export function readRun(exitCode: number, output: string): TestRun {
  const count = (word: string) =>
    Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(output)?.[1] ?? 0)
  const tests = count('pass') + count('fail')
  const end = output.slice(-2000)
  if (tests === 0) throw new Error(`no test ran: ${end}`)
  // A file that cannot be loaded counts as one failed test.
  return { failed: exitCode !== 0, broken: tests === count('errors?'), output: end }
}

/** Why the fault was missed; empty if a test noticed it. */
export function whyMissed(before: TestRun, after: TestRun): string {
  if (before.failed) return `the test fails without the fault: ${before.output}`
  if (after.broken) return `no test could run: ${after.output}`
  return after.failed ? '' : 'no test failed'
}

/** Runs the test without and with the fault. Returns why it was missed; empty if it was noticed. */
export function tryMutation(mutation: Mutation): string {
  using folder = temporaryFolder()
  for (const name of [...COPIED, 'bunfig.toml', 'bun.lock']) {
    cpSync(join(ROOT, name), join(folder.path, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'))
  const before = runTest(folder.path, mutation)
  for (const edit of mutation.edits) {
    const file = join(folder.path, edit[0])
    writeFileSync(file, edited(readFileSync(file, 'utf8'), edit))
  }
  return whyMissed(before, before.failed ? before : runTest(folder.path, mutation))
}

function runTest(cwd: string, { test, title, env }: Mutation): TestRun {
  const filter = title === undefined ? [] : ['--test-name-pattern', title]
  const words = [process.execPath, 'test', `./${test}`, '--timeout', '600000', ...filter]
  const ran = Bun.spawnSync(words, { cwd, env: { ...process.env, ...env } })
  return readRun(ran.exitCode, `${ran.stderr}`)
}

function main(wanted: readonly string[]): void {
  const unknown = wanted.filter((name) => MUTATIONS.every((one) => one.name !== name))
  if (unknown.length > 0) throw new Error(`no mutation is called ${unknown.join(', ')}`)
  console.log('| fault | test | seconds | |\n| --- | --- | ---: | --- |')
  let missed = 0
  for (const mutation of MUTATIONS) {
    if (wanted.length > 0 && !wanted.includes(mutation.name)) continue
    const start = performance.now()
    const why = tryMutation(mutation)
    if (why !== '') missed++
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    const verdict = why === '' ? 'noticed' : `MISSED: ${why}`
    console.log(`| ${mutation.name} | ${mutation.test} | ${seconds} | ${verdict} |`)
  }
  console.log(missed === 0 ? '\nEvery fault is noticed.' : `\n${missed} missed.`)
  process.exitCode = missed === 0 ? 0 : 1
}

if (import.meta.main) main(process.argv.slice(2))
