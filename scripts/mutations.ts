/**
 * Do the tests notice the faults that matter most? Puts each fault into a copy of the tree and runs
 * the test that must fail: bun scripts/mutations.ts [name ...]. Exits with 1 if a fault is missed.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/folder.ts'

/** A change in one declaration: what the pattern matches there once, and what replaces it. */
type Edit = readonly [file: string, declaration: string, pattern: RegExp, replacement: string]

export interface Mutation {
  name: string
  edits: readonly Edit[]
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
      ['src/db/open.ts', 'openWritable', /FULL/, 'NORMAL'],
      ['src/db/open.ts', 'openWritable', /synchronous: 2/, 'synchronous: 1'],
    ],
    test: 'test/durability/power-loss.test.ts',
    title: 'no acknowledged write is lost',
    env: { POWER_LOSS_ROUNDS: '1', POWER_LOSS_TORN_DISKS: '0' },
  },
  {
    name: 'position-in-another-transaction',
    edits: [
      ['src/hits/store.ts', 'hitAdder', /advance\(end\)/, 'queueMicrotask(() => advance(end))'],
    ],
    test: 'src/hits/hits.test.ts',
  },
  {
    name: 'plain-journal-head',
    edits: [
      [
        'src/hot/journal-appender.ts',
        'appendIfRoom',
        /Atomics\.compareExchange.* !== \w+/,
        '(ring[HEAD] = next) !== next',
      ],
    ],
    test: 'src/hot/journal-appender.test.ts',
    title: 'threads that append at the same time',
  },
  {
    name: 'leftmost-forwarded-address',
    edits: [['src/hot/client-address.ts', 'resolve', /!this\.#isTrusted\(\w+\)/, 'false']],
    test: 'src/hot/client-address.test.ts',
  },
  {
    name: 'hosts-with-a-final-dot',
    edits: [['src/blocklist/match.ts', 'canonicalHost', /end > 0/, 'end < 0']],
    test: 'src/blocklist/watch.evasion.test.ts',
  },
  {
    name: 'plain-text-secrets',
    edits: [
      [
        'src/accounts/secrets.ts',
        'hash',
        /digest\(\)/,
        'digest().fill(secret, 0, Math.min(secret.length, 32))',
      ],
    ],
    test: 'test/e2e/no-secrets-at-rest.test.ts',
  },
  {
    name: 'bodies-of-any-size',
    edits: [['src/http/body.ts', 'SMALL_BODY_MAX', /64/, '64_000']],
    test: 'test/durability/raw-sockets.test.ts',
    title: 'over 64 KiB',
  },
  {
    name: 'open-beside-connections',
    edits: [['src/db/open.ts', 'openWritable', /db = new/, 'refuseForeignFile(file); db = new']],
    test: 'test/durability/program.test.ts',
    title: 'another program that opens and closes',
  },
  {
    name: 'hits-without-a-position',
    edits: [['src/hits/cluster-store.ts', 'clusterHitAdder', /countedOf\(.*\) !== from/, 'false']],
    test: 'src/hits/cluster-store.test.ts',
  },
  {
    name: 'refuse-with-old-data',
    edits: [['src/db/writer.ts', 'decide', /await this\.catchUp\(\)/, '']],
    test: 'test/cluster/refusals.test.ts',
  },
  {
    name: 'first-digest-wins',
    edits: [
      [
        'src/cluster/comparison.ts',
        'verdictOn',
        /digests\.filter\(.*\/ 2/,
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
        'rowReader',
        /text = columns/,
        'text = columns.filter(({ pk }) => pk > 0)',
      ],
    ],
    test: 'test/cluster/differences.test.ts',
    title: 'changed by hand',
  },
  {
    name: 'start-beside-the-original',
    edits: [['src/cluster/log.ts', 'report', /new HostInUse\(\)/, 'new Error()']],
    test: 'test/cluster/differences.test.ts',
    title: 'a copied data folder',
  },
  {
    name: 'append-twice',
    edits: [
      [
        'src/cluster/shared-order.ts',
        '#append',
        /log\.append\(entry/,
        'log.append({ ...entry, batch: crypto.randomUUID() }',
      ],
    ],
    test: CLUSTER,
    env: { ...CLUSTER_ROUNDS, CLUSTER_FAULT: 'answers of PostgreSQL lost' },
  },
  {
    name: 'append-without-a-deadline',
    edits: [
      ['src/cluster/shared-order.ts', '#append', /deadlineAfter\(ms\)/, 'deadlineAfter(1e9)'],
    ],
    test: 'test/durability/cluster-outage.test.ts',
  },
  {
    name: 'one-position-of-hits',
    edits: [
      [
        'src/hits/cluster-store.ts',
        'clusterHitAdder',
        /countedOf\(db, .*\) !== from/,
        `countedOf(db, '', '') !== from`,
      ],
      [
        'src/hits/cluster-store.ts',
        'clusterHitAdder',
        /setPosition\.run\(.*, end\)/,
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
        'nextCode',
        /digest\.subarray\(0, length\)/,
        'crypto.getRandomValues(new Uint8Array(length))',
      ],
    ],
    test: CLUSTER,
    env: CLUSTER_ROUNDS,
  },
]

const ROOT = join(import.meta.dir, '..')
const COPIED = ['src', 'drizzle', 'scripts', 'test', 'docs', 'package.json', 'tsconfig.json']

/** The text with the fault. Throws unless the declaration contains what changes exactly once. */
export function edited(text: string, [file, name, pattern, replacement]: Edit): string {
  const { start, end } = declarationOf(text, file, name)
  const found = text.slice(start, end)
  const count = found.match(new RegExp(pattern, 'g'))?.length ?? 0
  if (count !== 1) throw new Error(`${name} of ${file} has ${count} times: ${pattern}`)
  return text.slice(0, start) + found.replace(pattern, () => replacement) + text.slice(end)
}

/** The lines of a function, method or constant, by the indentation of its first and last line. */
function declarationOf(text: string, file: string, name: string): { start: number; end: number } {
  const head = `^( {0,2})(?:export )?(?:async )?(?:function |const )?${name}\\b.*$`
  const found = [...text.matchAll(new RegExp(head, 'gm'))].filter(
    ([line]) => /[({[]$/.test(line) || line.includes('const '),
  )
  const [first] = found
  if (!first || found.length > 1) throw new Error(`${file} declares ${name} ${found.length} times`)
  const isBlock = /[({[]$/.test(first[0])
  const last = isBlock ? `\n${first[1]}}` : '\n'
  return { start: first.index, end: text.indexOf(last, first.index) }
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
