import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { testWith } from '../support/tools.ts'
import { outdatedEntries } from './one-host.ts'

/** The short form of `npm run test:cluster`. */

const ROOT = join(import.meta.dir, '../..')
const FILES = ['shorten', 'delete', 'aliases', 'dashboard-keys']

/** The titles that failed, as lines that name their files. */
async function failedOf(files: readonly string[]): Promise<string[]> {
  const child = Bun.spawn([process.execPath, 'scripts/test-cluster.ts', ...files], {
    cwd: ROOT,
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const out = await new Response(child.stdout).text()
  await child.exited
  expect(out).toMatch(/[1-9]\d* passed, \d+ failed/)
  return out.split('\n').filter((line) => line.startsWith('Failed'))
}

/**
 * On a busy machine, the answer to a change may be sent after 250 ms although another host does not
 * have it yet: a file that fails runs once more.
 */
testWith('postgres')(
  'tests of links and keys pass with three hosts, each request to a random one',
  async () => {
    const files = FILES.map((name) => `test/e2e/${name}.test.ts`)
    const failed = await failedOf(files)
    const again = files.filter((file) => failed.some((line) => line.includes(file)))
    if (failed.length > 0) expect(again).not.toEqual([])
    expect(again.length === 0 ? [] : await failedOf(again)).toEqual([])
  },
  600_000,
)

test('the list of tests for one host only names tests that exist', () => {
  const files = [...new Bun.Glob('test/e2e/*.test.ts').scanSync(ROOT)]
  const texts = files.map((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    return [basename(file, '.test.ts'), text] as const
  })
  expect(outdatedEntries(new Map(texts))).toEqual([])
})
