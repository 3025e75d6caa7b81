import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MUTATIONS, mutate, tryMutation } from '../scripts/mutations.ts'

/** The short form of scripts/mutations.ts: the faults that a test sees within seconds. */

const quick = MUTATIONS.filter((mutation) => mutation.quick)

test.each(quick)(
  'it is seen when $name',
  (mutation) => {
    expect(tryMutation(mutation)).toMatchObject({ isSeen: true, why: '' })
  },
  60_000,
)

test('every fault in the list can still be put in', () => {
  for (const mutation of MUTATIONS) {
    const text = readFileSync(join(import.meta.dir, '..', mutation.file), 'utf8')
    expect(mutate(text, mutation)).not.toBe(text)
  }
})

test('a fault that no test sees is reported', () => {
  const harmless = {
    name: 'a comment is longer',
    file: 'src/db/writer.ts',
    changes: [['Group commit: ', 'The group commit: ']],
    test: 'src/db/writer.busy.test.ts',
  } as const
  expect(tryMutation(harmless)).toMatchObject({ isSeen: false, why: 'no test failed' })
}, 60_000)
