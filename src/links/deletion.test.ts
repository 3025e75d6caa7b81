import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { inProcess } from '../../test/support/in-process.ts'
import { createLog } from '../lib/log.ts'
import { AccountDeletion, type DeletionWrites } from './deletion.ts'

type Options = ConstructorParameters<typeof AccountDeletion>[0]

test('a stop waits for no more than the batch under way, and leaves the account for the next start', async () => {
  const calls: string[] = []
  const deletion = new AccountDeletion({
    writer: inProcess<DeletionWrites>({
      beginDeletion() {
        calls.push('beginDeletion')
        return true
      },
      removeAccount: () => void calls.push('removeAccount'),
    }),
    links: {
      async deleteSome() {
        calls.push('deleteSome')
        if (calls.length > 10) return 0
        void deletion.close()
        return 1
      },
    },
    accounts: { listDeleted: () => [] } as unknown as Options['accounts'],
    log: createLog({ level: 'silent' }),
  })
  const begun = await deletion.begin(1, 0)
  if (begun) await begun.done
  expect(calls).toEqual(['beginDeletion', 'deleteSome'])
})

test('in a cluster, a deletion that another host has left unfinished is taken over', async () => {
  const removed: number[] = []
  const deleted: number[] = []
  const deletion = new AccountDeletion({
    writer: inProcess<DeletionWrites>({
      beginDeletion: () => true,
      removeAccount: ({ accountId }) => {
        deleted.splice(deleted.indexOf(accountId), 1)
        removed.push(accountId)
      },
    }),
    links: { deleteSome: async () => 0 },
    accounts: { listDeleted: () => [...deleted] } as unknown as Options['accounts'],
    log: createLog({ level: 'silent' }),
    takeOverMs: 1,
  })
  deleted.push(7)
  await eventually('the account is removed', () => removed.length > 0)
  await deletion.close()
  expect(removed).toEqual([7])
})
