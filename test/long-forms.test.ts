import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LONG } from '../scripts/durability.ts'

/** `npm run test:durability` is the one command for every long form. */

const ROOT = join(import.meta.dir, '..')
const LENGTH = /process\.env\.(\w+_(?:ROUNDS|RUNS|REQUESTS|DISKS))\b/g

test('every length that a test takes from the environment is given by scripts/durability.ts', () => {
  const found = [...new Bun.Glob('{test,src}/**/*.test.ts').scanSync(ROOT)].flatMap((file) => {
    const lengths = [...readFileSync(join(ROOT, file), 'utf8').matchAll(LENGTH)]
    return lengths.map(([, name]) => `${file} ${name}`)
  })
  const given = Object.entries(LONG).flatMap(([file, env]) =>
    Object.keys(env).map((name) => `${file} ${name}`),
  )
  expect(given.sort()).toEqual([...new Set(found)].sort())
})

const wrong = ['no-such-test', '--seed x', '--seed=-1', '--times 0']
test.each(wrong)('scripts/durability.ts runs nothing when told %s', (line) => {
  const words = [process.execPath, 'scripts/durability.ts', ...line.split(' ')]
  const ran = Bun.spawnSync(words, { cwd: ROOT })
  expect([ran.exitCode, `${ran.stdout}`]).toEqual([2, ''])
  expect(`${ran.stderr}`).toContain(
    'Names: power-loss, kill, journal-threads, kill-bulk, restore, full-disk-start, io-faults, model, fuzz, ',
  )
})
