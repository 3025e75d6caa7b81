import { expect, test } from 'bun:test'
import { MINUTE } from '../lib/clock.ts'
import { Thread } from '../lib/thread.ts'
import { KeyUses, type KeyUseWrites } from './key-uses.ts'

function recorder() {
  const written: unknown[] = []
  const writer = Thread.inProcess<KeyUseWrites>({ noteKeyUses: (uses) => void written.push(uses) })
  return { uses: new KeyUses(writer), written }
}

test('a key is written at most once a minute, and several keys together', async () => {
  const { uses, written } = recorder()
  uses.note(1, 1000)
  uses.note(1, 2000)
  uses.note(2, 3000)
  uses.note(1, 1000 + MINUTE - 1)
  uses.note(1, 1000 + MINUTE)
  await uses.close()
  expect(written).toEqual([
    [
      { keyId: 1, at: 1000 },
      { keyId: 2, at: 3000 },
      { keyId: 1, at: 1000 + MINUTE },
    ],
  ])
})

test('a flood of keys is held in bounded memory', async () => {
  const { uses, written } = recorder()
  for (let id = 0; id < 50_000; id++) uses.note(id, 1000)
  await uses.close()
  expect((written[0] as unknown[]).length).toBe(10_000)
})
