import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import { AccountDeletion } from './deletion.ts'

type Options = ConstructorParameters<typeof AccountDeletion>[0]

test('a stop waits for no more than the batch under way, and leaves the account for the next start', async () => {
  const calls: string[] = []
  const gone: string[] = []
  const deletion = new AccountDeletion({
    writer: {
      async call(name: string) {
        calls.push(name)
        if (name !== 'deleteLinksOf') return true
        if (calls.length > 10) return []
        void deletion.close()
        return ['SPRING26']
      },
    } as unknown as Options['writer'],
    accounts: { listDeleted: () => [] } as unknown as Options['accounts'],
    cache: { drop: (code: string) => gone.push(code) } as unknown as Options['cache'],
    images: { remove: () => {} } as unknown as Options['images'],
    log: createLog({ level: 'silent' }),
  })
  const begun = await deletion.begin(1, 0)
  if (begun) await begun.done
  expect(calls).toEqual(['beginDeletion', 'deleteLinksOf'])
  expect(gone).toEqual(['SPRING26'])
})
