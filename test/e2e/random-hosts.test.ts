import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { outdatedEntries } from '../support/one-host.ts'
import { testWith } from '../support/tools.ts'

/** The short form of `npm run test:cluster`. */

const ROOT = join(import.meta.dir, '../..')
const FILES = ['shorten', 'reserve', 'update', 'delete', 'dashboard-keys']

testWith('postgres')(
  'tests of links and keys pass with three hosts, each request to a random one',
  async () => {
    const files = FILES.map((name) => `test/e2e/${name}.test.ts`)
    const child = Bun.spawn([process.execPath, 'scripts/test-cluster.ts', ...files], {
      cwd: ROOT,
      stdout: 'pipe',
      stderr: 'ignore',
    })
    const out = await new Response(child.stdout).text()
    expect(out.split('\n').filter((line) => line.startsWith('Failed'))).toEqual([])
    expect([await child.exited, out]).toEqual([0, expect.stringMatching(/\d{2,} passed, 0 failed/)])
  },
  180_000,
)

test('the list of tests for one host only names tests that exist', () => {
  const files = [...new Bun.Glob('test/e2e/*.test.ts').scanSync(ROOT)]
  const texts = files.map((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    return [basename(file, '.test.ts'), text] as const
  })
  expect(outdatedEntries(new Map(texts))).toEqual([])
})
