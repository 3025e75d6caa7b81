/**
 * Runs the end-to-end tests against clusters of three hosts: npm run test:cluster -- [file ...].
 * Each service of a test is three hosts on one PostgreSQL, and each request goes to one of them at
 * random. Tests that cannot apply are in `test/cluster/one-host.ts`, with the reason.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ofOneHost } from '../test/cluster/one-host.ts'
import { temporaryFolder } from '../test/support/folder.ts'
import { PostgresServer } from '../test/support/postgres.ts'

const ROOT = join(import.meta.dir, '..')
const HOSTS = 3
/** Fewer than in `npm test`: each service has three times the threads. */
const PROCESSES = 2
const TIMEOUT_MS = 120_000

interface TestResult {
  file: string
  title: string
  failed: boolean
}

/** The results in a report in JUnit's format. */
export function readReport(report: string): TestResult[] {
  const cases = report.matchAll(/<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)
  return [...cases].map(([, attributes = '', , content = '']) => ({
    file: attributeOf(attributes, 'file'),
    title: attributeOf(attributes, 'name'),
    failed: content.includes('<failure'),
  }))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}

function attributeOf(attributes: string, name: string): string {
  const text = new RegExp(`(?:^| )${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
  return text.replace(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity)
}

function findFiles(): string[] {
  const files = [...new Bun.Glob('test/e2e/*.test.ts').scanSync(ROOT)].sort()
  return files.filter((file) => ofOneHost(file) === undefined)
}

async function main(wanted: readonly string[]): Promise<void> {
  using folder = temporaryFolder()
  await using postgres = await PostgresServer.start({ isVolatile: true })
  const report = join(folder.path, 'report.xml')
  const files = wanted.length > 0 ? wanted : findFiles()
  const options = [`--parallel=${PROCESSES}`, '--no-isolate', `--timeout=${TIMEOUT_MS}`]
  const reporter = ['--reporter=junit', `--reporter-outfile=${report}`]
  const words = files.map((file) => `./${file}`)
  const child = Bun.spawn([process.execPath, 'test', ...options, ...reporter, ...words], {
    cwd: ROOT,
    env: { ...process.env, TEST_HOSTS: String(HOSTS), TEST_POSTGRES: postgres.url() },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await child.exited
  const results = existsSync(report) ? readReport(readFileSync(report, 'utf8')) : []
  const failed = results.filter((result) => result.failed)
  const unexpected = failed.filter(({ file, title }) => ofOneHost(file, title) === undefined)
  for (const { file, title } of unexpected) console.log(`Failed: ${file}: ${title}`)
  const excused = failed.length - unexpected.length
  const needless = results.filter(
    ({ file, title, failed }) => !failed && ofOneHost(file, title) !== undefined,
  )
  for (const { file, title } of needless) console.log(`Listed, but passed: ${file}: ${title}`)
  const passed = results.length - failed.length
  console.log(
    `\n${HOSTS} hosts: ${passed} passed, ${unexpected.length} failed, ${excused} do not apply`,
  )
  // A file that throws while it loads fails the run, but is not in the report.
  const isBroken = code !== 0 && failed.length === 0
  process.exitCode = passed === 0 || unexpected.length > 0 || isBroken ? 1 : 0
}

if (import.meta.main) await main(process.argv.slice(2))
