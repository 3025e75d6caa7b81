/**
 * Do the tests notice the faults that matter most? Puts each fault into a copy of the tree and runs
 * the test that must fail: bun scripts/mutations.ts [name ...]. Exits with 1 if a fault is missed.
 *
 * The place of a fault is a comment in `src/` above the line that changes:
 * `// mutate <name>: s/<pattern>/<replacement>/`. The pattern is a regular expression, and the
 * replacement may use `$1` and `$&`.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/folder.ts'

export interface Mutation {
  /** The name in the comments. */
  name: string
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
    test: 'test/durability/power-loss.test.ts',
    title: 'as it is, no acknowledged write is lost',
    env: { POWER_LOSS_ROUNDS: '1', POWER_LOSS_TORN_DISKS: '0' },
  },
  {
    name: 'hash-known-codes-only',
    test: 'test/e2e/timing-403.test.ts',
    title: 'asks the database once and hashes once',
  },
  { name: 'position-in-another-transaction', test: 'src/hits/hits.test.ts' },
  {
    name: 'plain-journal-head',
    test: 'src/hot/journal-appender.test.ts',
    title: 'threads that append at the same time',
  },
  { name: 'leftmost-forwarded-address', test: 'src/hot/client-address.vectors.test.ts' },
  { name: 'hosts-with-a-final-dot', test: 'src/blocklist/watch.evasion.test.ts' },
  { name: 'plain-text-secrets', test: 'test/e2e/no-secrets-at-rest.test.ts' },
  {
    name: 'bodies-of-any-size',
    test: 'test/durability/raw-connections.test.ts',
    title: 'over 64 KiB',
  },
  {
    name: 'open-beside-connections',
    test: 'test/durability/program.test.ts',
    title: 'who looks into the database',
  },
  { name: 'hits-without-a-position', test: 'src/hits/shared-store.test.ts' },
  { name: 'refuse-with-old-data', test: 'test/cluster/refusals.test.ts' },
  {
    name: 'first-digest-wins',
    test: 'test/cluster/differences.test.ts',
    title: 'the first to compare',
  },
  { name: 'digests-of-keys', test: 'test/cluster/differences.test.ts', title: 'changed by hand' },
  {
    name: 'start-beside-the-original',
    test: 'test/cluster/differences.test.ts',
    title: 'a copied data folder',
  },
  { name: 'append-twice', test: CLUSTER, env: CLUSTER_ROUNDS },
  { name: 'append-without-a-deadline', test: 'test/durability/cluster-outage.test.ts' },
  { name: 'one-position-of-hits', test: CLUSTER, env: CLUSTER_ROUNDS },
  { name: 'redraw-at-random', test: CLUSTER, env: CLUSTER_ROUNDS },
]

const ROOT = join(import.meta.dir, '..')
const COPIED = ['src', 'drizzle', 'scripts', 'test', 'docs', 'package.json', 'tsconfig.json']
const TAG = /^\s*\/\/ mutate ([\w-]+): s\/(.+?)\/(.*)\/$/

/** The files with tags and the names in each, by path from the root. */
export function findTags(root = ROOT): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const path of new Bun.Glob('src/**/*.ts').scanSync(root)) {
    const lines = readFileSync(join(root, path), 'utf8').split('\n')
    const names = lines.flatMap((line) => TAG.exec(line)?.[1] ?? [])
    if (names.length > 0) found.set(path, new Set(names))
  }
  return found
}

/** The text with the fault. Throws if a pattern matches nothing: its tag is out of date. */
export function mutate(text: string, name: string): string {
  const lines = text.split('\n')
  for (const [at, line] of lines.entries()) {
    const [, tag, pattern = '', replacement = ''] = TAG.exec(line) ?? []
    if (tag !== name) continue
    const original = lines[at + 1] ?? ''
    const changed = original.replace(new RegExp(pattern), replacement)
    if (changed === original) throw new Error(`${name}: ${pattern} changes nothing in: ${original}`)
    lines[at + 1] = changed
  }
  return lines.join('\n')
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
  for (const [path, names] of findTags(folder.path)) {
    if (!names.has(mutation.name)) continue
    const file = join(folder.path, path)
    writeFileSync(file, mutate(readFileSync(file, 'utf8'), mutation.name))
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
