import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The index of the documentation. */

const DOCS = join(import.meta.dir, '../docs')

test('the index has every page', () => {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
  const pages = [...new Bun.Glob('**/*.md').scanSync({ cwd: DOCS })]
    .filter((path) => !/^(decisions|pictures)\/|^README/.test(path))
    .sort()
  expect(pages.length).toBeGreaterThan(10)
  expect(pages.filter((path) => !index.includes(`](${path})`))).toEqual([])
})
