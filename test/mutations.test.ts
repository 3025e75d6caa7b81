/**
 * The tests notice the faults of scripts/mutations.ts. Trying them takes minutes, so that is done
 * only with MUTATION_RUNS (`npm run test:durability -- mutations`); the short form checks the list.
 */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  findTags,
  MUTATIONS,
  mutate,
  readRun,
  tryMutation,
  whyMissed,
} from '../scripts/mutations.ts'

const ROOT = join(import.meta.dir, '..')

for (let run = 0; run < Number(process.env.MUTATION_RUNS ?? 0); run++) {
  test.each([...MUTATIONS])('the tests notice the fault $name', (mutation) => {
    expect(tryMutation(mutation)).toBe('')
  })
}

test('each mutation has a tag in src/, each tag a mutation, and every tag still matches its line', () => {
  const tags = findTags()
  const names = MUTATIONS.map(({ name }) => name)
  expect([...new Set([...tags.values()].flatMap((found) => [...found]))].sort()).toEqual(
    names.toSorted(),
  )
  for (const [path, found] of tags) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const name of found) expect(mutate(text, name)).not.toBe(text)
  }
  for (const { test: file } of MUTATIONS) expect(existsSync(join(ROOT, file))).toBe(true)
})

test('a mutation changes the line below each of its tags, and nothing else', () => {
  const text =
    '// mutate a: s/(\\d+)/-$1/\nf(1, 2)\n// mutate b: s/f/g/\nf(3)\n// mutate a: s/f/g/\nf(4)'
  expect(
    mutate(text, 'a')
      .split('\n')
      .filter((line) => !line.startsWith('//')),
  ).toEqual(['f(-1, 2)', 'f(3)', 'g(4)'])
  expect(() => mutate('// mutate a: s/x/y/\nf(1)', 'a')).toThrow('a: x changes nothing in: f(1)')
})

const passed = readRun(0, ' 3 pass\n 0 fail\n')
const failed = readRun(1, ' 2 pass\n 1 fail\n')
const broken = readRun(1, ' 0 pass\n 1 fail\n 1 error\n')

test('a fault counts as noticed only if a test that ran has failed because of it', () => {
  expect(whyMissed(passed, failed)).toBe('')
  expect(whyMissed(passed, passed)).toBe('no test failed')
  expect(whyMissed(failed, failed)).toStartWith('the test fails without the fault')
  expect(whyMissed(passed, broken)).toStartWith('no test could run')
  expect(() => readRun(0, ' 0 pass\n 0 fail\n')).toThrow('no test ran')
})
