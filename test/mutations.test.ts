/**
 * The tests notice the faults of scripts/mutations.ts. Trying them takes minutes, so that is done
 * only with MUTATION_RUNS (`npm run test:durability -- mutations`); the short form checks the list.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { edited, MUTATIONS, readRun, tryMutation, whyMissed } from '../scripts/mutations.ts'

const ROOT = join(import.meta.dir, '..')

for (let run = 0; run < Number(process.env.MUTATION_RUNS ?? 0); run++) {
  test.each([...MUTATIONS])('the tests notice the fault $name', (mutation) => {
    expect(tryMutation(mutation)).toBe('')
  })
}

test.each([...MUTATIONS])(
  'the fault $name still finds what it changes, and its test',
  ({ edits, test: file, title = '' }) => {
    for (const edit of edits) {
      const text = readFileSync(join(ROOT, edit[0]), 'utf8')
      expect(edited(text, edit)).not.toBe(text)
    }
    expect(readFileSync(join(ROOT, file), 'utf8').includes(title)).toBe(true)
  },
)

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

test('a fault is put into the declaration that it names, and nowhere else', () => {
  const text =
    'const a = 1\nfunction f(\n  b,\n) {\n  return 1\n}\n\nfunction g() {\n  return 1\n}\n'
  expect(edited(text, ['x.ts', 'f', /1/, '2'])).toBe(text.replace('return 1', 'return 2'))
  expect(edited(text, ['x.ts', 'a', /1/, '2'])).toBe(text.replace('1', '2'))
  expect(() => edited(text, ['x.ts', 'h', /1/, '2'])).toThrow('declares h 0 times')
  expect(() => edited(text, ['x.ts', 'g', /3/, '2'])).toThrow('has 0 times')
})
