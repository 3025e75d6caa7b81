import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { createLog } from '../lib/log.ts'
import { AccountDeletion } from './deletion.ts'

type DeletionData = ConstructorParameters<typeof AccountDeletion>[0]['data']

const accountsWith = (
  accounts: DeletionData['accounts'],
  removeSome = async () => 0,
): DeletionData => ({ accounts, history: { removeSome } })

test('a stop waits for no more than the batch under way, and leaves the account for the next start', async () => {
  const calls: string[] = []
  const deletion = new AccountDeletion({
    data: accountsWith({
      listDeleted: () => [],
      remove: async () => void calls.push('remove'),
    }),
    links: {
      async deleteSome() {
        calls.push('deleteSome')
        if (calls.length > 10) return 0
        void deletion.close()
        return 1
      },
    },
    log: createLog({ level: 'silent' }),
  })
  await deletion.finish(1)
  expect(calls).toEqual(['deleteSome'])
})

test('the history of a closed account goes in parts, after its links', async () => {
  const calls: string[] = []
  const left = { links: 2, events: 3 }
  const deletion = new AccountDeletion({
    data: accountsWith(
      { listDeleted: () => [], remove: async () => void calls.push('remove') },
      async () => {
        calls.push('events')
        return left.events-- > 0 ? 500 : 0
      },
    ),
    links: { deleteSome: async () => (left.links-- > 0 ? 500 : 0) },
    log: createLog({ level: 'silent' }),
  })
  await deletion.finish(1)
  expect(calls).toEqual(['events', 'events', 'events', 'events', 'remove'])
})

test('a deletion that has failed, or that another host of the cluster has left, is resumed', async () => {
  const removed: number[] = []
  const deleted: number[] = []
  let failures = 2
  const deletion = new AccountDeletion({
    data: accountsWith({
      listDeleted: () => [...deleted],
      async remove({ accountId }) {
        if (failures-- > 0) throw new Error('the disk is full')
        deleted.splice(deleted.indexOf(accountId), 1)
        removed.push(accountId)
      },
    }),
    links: { deleteSome: async () => 0 },
    log: createLog({ level: 'silent' }),
    resumeMs: 1,
  })
  deleted.push(7)
  await eventually('the account is removed', () => removed.length > 0)
  await deletion.close()
  expect(removed).toEqual([7])
})
