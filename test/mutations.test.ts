import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MUTATIONS, type Mutation, mutate, tryMutation } from '../scripts/mutations.ts'

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

const unseen = [
  { name: 'a comment is longer', to: 'The group commit: ', why: 'no test failed' },
  { name: 'nothing can be loaded', to: '*/ ]', why: expect.stringContaining('no test could run') },
]
test.each(unseen)(
  'a fault that no test sees is reported: $name',
  ({ name, to, why }) => {
    const fault: Mutation = {
      name,
      file: 'src/db/writer.ts',
      test: 'src/db/writer.busy.test.ts',
      changes: [['Group commit: ', to]],
    }
    expect(tryMutation(fault)).toMatchObject({ isSeen: false, why })
  },
  60_000,
)
