/**
 * Runs the tests: npm test -- [--all] [arguments of bun test]. Without `--all` and without paths,
 * the tests of `SLOW` are left out. A test whose tool is missing is skipped; the end of the output
 * says how to install the tool. Where `CI` is set, that fails the run.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/folder.ts'
import type { MissingTool } from '../test/support/tools.ts'

const ROOT = join(import.meta.dir, '..')
/** More than cores: many tests wait for a disk, a browser or the end of a fault. */
const PROCESSES = 4
const TIMEOUT_MS = 120_000
/** They break disks, processes and networks, or open every page: together, half of the time. */
const SLOW = ['test/abuse/**', 'test/cluster/**', 'test/durability/**', 'test/e2e/dashboard-walk*']
/**
 * Test files that take long, in seconds on two cores. They start first: one that starts last would
 * run alone. The numbers need not be exact.
 */
const LONG: Readonly<Record<string, number>> = {
  'test/durability/cluster': 80,
  'test/durability/cluster-outage': 75,
  'test/abuse/abuse': 75,
  'test/cluster/differences': 60,
  'test/e2e/dashboard-walk': 60,
  'test/e2e/more-domains': 60,
  'test/cluster/slow-links': 45,
  'test/cluster/random-hosts': 40,
  'test/durability/stop': 35,
  'test/e2e/sign-in-fairness': 30,
  'test/e2e/cluster-commands': 28,
  'test/e2e/dashboard-list-browser': 25,
  'test/durability/commands': 24,
  'test/e2e/cluster-recovery': 20,
  'test/durability/command-errors': 18,
  'test/durability/cluster-guide': 17,
  'test/e2e/dashboard-link-browser': 15,
  'test/durability/cluster-upgrade': 14,
  'test/e2e/no-visitors-at-rest': 12,
  'src/cluster/log': 12,
}
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

/** Writes the times of all test files as `bun test` reads them, with a second for most. */
function writeTimings(file: string): void {
  const names = [...new Bun.Glob('{bench,src,test}/**/*.test.ts').scanSync(ROOT)]
  const times = names.map((name) => [name, 1000 * (LONG[name.replace('.test.ts', '')] ?? 1)])
  writeFileSync(file, JSON.stringify({ version: 1, files: Object.fromEntries(times) }))
}

/** A line for each missing tool, with the test files that were skipped without it. */
function describeMissing(file: string): string[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const missing = lines.map((line) => JSON.parse(line) as MissingTool)
  const tools = Map.groupBy(missing, ({ tool }) => tool)
  return [...tools].sort().map(([tool, users]) => {
    const files = [...new Set(users.map((user) => user.file))].sort()
    return `  ${tool} (${users[0]?.install}): ${files.join(', ')}`
  })
}

using folder = temporaryFolder()
const list = join(folder.path, 'missing-tools')
const timings = join(folder.path, 'timings.json')
writeTimings(timings)
// The files of a process share its modules, as in plain `bun test`. Otherwise each file would load
// the service again.
const options = [
  `--parallel=${PROCESSES}`,
  '--no-isolate',
  `--timeout=${TIMEOUT_MS}`,
  `--timings=${timings}`,
]
const given = process.argv.slice(2)
const rest = given.filter((argument) => argument !== '--all')
const isPart = rest.length === given.length && rest.every((argument) => argument.startsWith('-'))
if (isPart) options.push(...SLOW.map((pattern) => `--path-ignore-patterns=${pattern}`))
const child = Bun.spawn([process.execPath, 'test', ...options, ...rest], {
  cwd: ROOT,
  env: { ...process.env, MISSING_TOOLS_FILE: list },
  stdio: ['inherit', 'inherit', 'inherit'],
})
for (const signal of FORWARDED) process.on(signal, () => child.kill(signal))
process.exitCode = await child.exited

if (isPart) console.log(`\nNot run: ${SLOW.join(', ')}. CI runs them: npm test -- --all`)
const missing = describeMissing(list)
if (missing.length > 0) {
  console.log(`\nTests were skipped because something is missing:\n${missing.join('\n')}`)
  if (process.env.CI) {
    console.log('In CI this fails the run.')
    process.exitCode ||= 1
  }
}
