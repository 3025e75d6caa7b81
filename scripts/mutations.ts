/**
 * Do the tests see the faults that matter most? Puts each into a copy of the tree and runs the test
 * that must fail: bun scripts/mutations.ts [--quick] [name ...]. Fails if a fault goes unseen.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { temporaryFolder } from '../test/support/folder.ts'

export interface Mutation {
  name: string
  file: string
  /** What stands there once, and what takes its place. */
  changes: readonly (readonly [from: string, to: string])[]
  /** The test file that must fail, and a part of the titles to run. */
  test: string
  title?: string
  env?: Record<string, string>
  /** Seen within seconds, without building the program. */
  quick?: true
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'commits are not synced',
    file: 'src/db/open.ts',
    changes: [
      ['PRAGMA synchronous = FULL', 'PRAGMA synchronous = NORMAL'],
      ['synchronous: 2,', 'synchronous: 1,'],
    ],
    test: 'test/durability/power-loss.test.ts',
    title: 'as it is, no acknowledged write is lost',
    env: { POWER_LOSS_ROUNDS: '1', POWER_LOSS_TORN_DISKS: '0' },
  },
  {
    name: 'a batch takes the write lock late',
    file: 'src/db/writer.ts',
    changes: [["'BEGIN IMMEDIATE'", "'BEGIN'"]],
    test: 'src/db/writer.busy.test.ts',
    quick: true,
  },
  {
    name: 'a transaction takes the write lock late',
    file: 'src/db/open.ts',
    changes: [['db.transaction(work).immediate()', 'db.transaction(work)()']],
    test: 'src/db/writer.busy.test.ts',
    quick: true,
  },
  {
    name: 'only a known code’s passcode is hashed',
    file: 'src/links/update.ts',
    changes: [
      [
        "deps.hasher.hash('passcode', passcode)",
        "link?.code === known ? deps.hasher.hash('passcode', passcode) : NO_HASH",
      ],
    ],
    test: 'test/e2e/timing-403.test.ts',
    title: 'asks the database once and hashes once',
    quick: true,
  },
  {
    name: 'the journal position is committed by itself',
    file: 'src/hits/store.ts',
    changes: [
      [
        'advance.run(end, linkIds.length)',
        'queueMicrotask(() => advance.run(end, linkIds.length))',
      ],
    ],
    test: 'src/hits/hits.test.ts',
    quick: true,
  },
  {
    name: 'the leftmost forwarded address is believed',
    file: 'src/hot/client-address.ts',
    changes: [
      ['      this.#setKey()\n      if (!this.#isTrusted()) return\n', '      this.#setKey()\n'],
    ],
    test: 'src/hot/client-address.vectors.test.ts',
    quick: true,
  },
  {
    name: 'a host with a dot at its end is another',
    file: 'src/blocklist/match.ts',
    changes: [['while (end > 0 && ', 'while (end < 0 && ']],
    test: 'src/blocklist/watch.evasion.test.ts',
    quick: true,
  },
  {
    name: 'secrets are stored as they are',
    file: 'src/accounts/secrets.ts',
    changes: [['.digest()\n', '.digest().fill(secret, 0, Math.min(secret.length, 32))\n']],
    test: 'test/e2e/no-secrets-at-rest.test.ts',
  },
  {
    name: 'a body may have any size',
    file: 'src/http/body.ts',
    changes: [['SMALL_BODY_MAX = 64 * KIB', 'SMALL_BODY_MAX = 64_000 * KIB']],
    test: 'test/durability/raw-connections.test.ts',
    title: 'over 64 KiB',
  },
  {
    name: 'the file is opened beside its connections',
    file: 'src/db/open.ts',
    changes: [['    db = new Database', '    refuseForeignFile(file)\n    db = new Database']],
    test: 'test/durability/program.test.ts',
    title: 'who looks into the database',
  },
]

const ROOT = join(import.meta.dir, '..')
const COPIED = ['src', 'drizzle', 'scripts', 'test', 'docs', 'package.json', 'tsconfig.json']

export interface Verdict {
  name: string
  /** The test passes as the tree stands, and fails with the fault in it. */
  isSeen: boolean
  /** What went otherwise; empty where nothing did. */
  why: string
  seconds: number
}

/** Runs the test without the fault, too: one that fails anyhow sees nothing. */
export function tryMutation(mutation: Mutation): Verdict {
  using folder = temporaryFolder()
  const start = performance.now()
  for (const name of [...COPIED, 'bunfig.toml']) {
    cpSync(join(ROOT, name), join(folder.path, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'))
  const before = runTest(folder.path, mutation)
  const file = join(folder.path, mutation.file)
  writeFileSync(file, mutate(readFileSync(file, 'utf8'), mutation))
  const after = before.failed ? before : runTest(folder.path, mutation)
  const why = before.failed
    ? `it fails without the fault: ${before.output}`
    : after.broken
      ? `no test could run: ${after.output}`
      : after.failed
        ? ''
        : 'no test failed'
  const seconds = (performance.now() - start) / 1000
  return { name: mutation.name, isSeen: why === '', why, seconds }
}

/** Throws if what is to change does not stand there once: the list is out of date. */
export function mutate(text: string, { file, changes }: Mutation): string {
  return changes.reduce((changed, [from, to]) => {
    const parts = changed.split(from)
    if (parts.length !== 2) throw new Error(`${from} stands ${parts.length - 1} times in ${file}`)
    return parts.join(to)
  }, text)
}

function runTest(cwd: string, { test, title, env }: Mutation) {
  const filter = title === undefined ? [] : ['--test-name-pattern', title]
  const words = [process.execPath, 'test', `./${test}`, '--timeout', '120000', ...filter]
  const ran = Bun.spawnSync(words, { cwd, env: { ...process.env, ...env } })
  const output = `${ran.stderr}`.slice(-2000)
  const count = (word: string) =>
    Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(`${ran.stderr}`)?.[1] ?? 0)
  const tests = count('pass') + count('fail')
  if (tests === 0) throw new Error(`${test} ran no test: ${output}`)
  // A file that cannot be loaded counts as one failed test, which has seen nothing.
  return { failed: ran.exitCode !== 0, broken: tests === count('errors?'), output }
}

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean' } },
  })
  const unknown = positionals.filter((name) => MUTATIONS.every((one) => one.name !== name))
  if (unknown.length > 0) throw new Error(`no fault is called ${unknown.join(', ')}`)
  const chosen = MUTATIONS.filter(
    ({ name, quick }) =>
      (!values.quick || quick) && (positionals.length === 0 || positionals.includes(name)),
  )
  console.log('| fault | seen by | seconds | |\n| --- | --- | ---: | --- |')
  let unseen = 0
  for (const mutation of chosen) {
    const { isSeen, why, seconds } = tryMutation(mutation)
    if (!isSeen) unseen++
    const verdict = isSeen ? 'seen' : `NOT SEEN: ${why}`
    console.log(`| ${mutation.name} | ${mutation.test} | ${seconds.toFixed(1)} | ${verdict} |`)
  }
  console.log(unseen === 0 ? '\nEvery fault is seen.' : `\n${unseen} not seen.`)
  process.exitCode = unseen === 0 ? 0 : 1
}

if (import.meta.main) main()
