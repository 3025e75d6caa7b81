/**
 * Runs the long form of every test that has one, and all of test/durability, one after the other:
 * npm run test:durability -- [--seed N] [--times N] [name ...]. Each time uses the next seed; the
 * output names the seed of a failure. A test skipped because of a missing tool counts as failed.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { temporaryFolder } from '../test/support/folder.ts'

const ROOT = join(import.meta.dir, '..')
const SEED_MAX = 2 ** 31

/** The environment variables that select the long form of a test file. */
export const LONG: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'test/durability/power-loss.test.ts': { POWER_LOSS_ROUNDS: '12', POWER_LOSS_TORN_DISKS: '4' },
  'test/durability/kill.test.ts': { KILL_ROUNDS: '500' },
  'test/durability/journal-threads.test.ts': { JOURNAL_KILL_ROUNDS: '500' },
  'test/durability/kill-bulk.test.ts': { KILL_BULK_ROUNDS: '24' },
  'test/durability/kill-import.test.ts': { KILL_IMPORT_ROUNDS: '50' },
  'test/durability/kill-upgrade.test.ts': { UPGRADE_KILL_ROUNDS: '30' },
  'test/durability/kill-hand-over.test.ts': { KILL_HAND_OVER_ROUNDS: '50' },
  'test/durability/restore.test.ts': { RESTORE_ROUNDS: '24' },
  'test/durability/full-disk-start.test.ts': { FULL_DISK_DISKS: '5' },
  'test/durability/io-faults.test.ts': { FAULT_ROUNDS: '40' },
  'test/durability/certificate.test.ts': { CERTIFICATE_ROUNDS: '30', CERTIFICATE_RESTARTS: '20' },
  'test/e2e/model.test.ts': { MODEL_RUNS: '1000' },
  'test/e2e/fuzz.test.ts': { FUZZ_REQUESTS: '20000' },
  'test/e2e/import-dry-run.test.ts': { DRY_RUN_ROUNDS: '300' },
  'test/mutations.test.ts': { MUTATION_RUNS: '1' },
  'src/hot/sliding-window.oracle.test.ts': { WINDOW_RUNS: '2000' },
  'src/limits/budgets.test.ts': { LIMITER_RUNS: '1000' },
  'src/draw/render.test.ts': { QR_RUNS: '300' },
  'test/durability/cluster.test.ts': { CLUSTER_ROUNDS: '300' },
}

const nameOf = (file: string) => basename(file, '.test.ts')

function findFiles(): string[] {
  const found = new Bun.Glob('test/durability/*.test.ts').scanSync(ROOT)
  return [...new Set([...Object.keys(LONG), ...[...found].sort()])]
}

/** Returns whether every test of the file ran and passed. */
async function run(file: string, seed: number): Promise<boolean> {
  using folder = temporaryFolder()
  const report = join(folder.path, 'report.xml')
  const words = ['--timeout', '3600000', '--reporter=junit', `--reporter-outfile=${report}`]
  const child = Bun.spawn([process.execPath, 'test', `./${file}`, ...words], {
    cwd: ROOT,
    env: {
      ...LONG[file],
      // Fewer or more rounds, such as KILL_ROUNDS=50.
      ...process.env,
      TEST_SEED: String(seed),
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) return false
  const isWhole = / skipped="0"/.test(
    /<testsuites .*/.exec(readFileSync(report, 'utf8'))?.[0] ?? '',
  )
  if (!isWhole) console.log('Tests were skipped.')
  return isWhole
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seed: { type: 'string' }, times: { type: 'string', default: '1' } },
  })
  const first = Math.floor(Number(values.seed ?? Math.random() * SEED_MAX))
  const times = Number(values.times)
  const files = findFiles()
  const names = files.map(nameOf)
  const isKnown = positionals.every((name) => names.includes(name))
  if (!isKnown || !(first >= 0) || !(times >= 1)) {
    console.error(`Names: ${names.join(', ')}. Seeds and times are whole numbers.`)
    process.exit(2)
  }

  const chosen = files.filter(
    (_, at) => positionals.length === 0 || positionals.includes(names[at] ?? ''),
  )
  const failed: string[] = []
  for (let time = 0; time < times; time++) {
    const seed = (first + time) % SEED_MAX
    for (const file of chosen) {
      console.log(`\n== ${nameOf(file)}, seed ${seed}`)
      if (!(await run(file, seed))) failed.push(`${nameOf(file)} --seed ${seed}`)
    }
  }
  for (const words of failed) console.log(`Failed: npm run test:durability -- ${words}`)
  console.log(failed.length === 0 ? '\nNothing was lost.' : `\n${failed.length} failed.`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

if (import.meta.main) await main()
