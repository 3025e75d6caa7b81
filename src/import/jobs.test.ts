import { expect, test } from 'bun:test'
import type { Account } from '../accounts/store.ts'
import { createLog } from '../lib/log.ts'
import { ImportJobs } from './jobs.ts'
import type { ImportKit } from './lines.ts'

const MIB = 1024 * 1024
const OPTIONS = {
  format: 'csv',
  passwords: 'pause',
  withoutHits: false,
  skipDisabled: false,
} as const

/** Jobs whose files have no row that needs the service, and hence no dependencies. */
function importJobs() {
  const log = createLog({ level: 'error', human: false, write: () => {} })
  const jobs = new ImportJobs({ log } as ImportKit & { log: typeof log })
  const check = (id: number, bytes: number, isTrusted = false) => {
    const blob = new Blob(['x'.repeat(bytes)])
    jobs.check(
      { id, plan: 'free' } as Account,
      { name: 'a.csv', blob, isTrusted },
      OPTIONS as never,
    )
  }
  return { jobs, check }
}

test('twenty imports of other accounts refuse nobody, and keep the import of the owner', () => {
  const { jobs, check } = importJobs()
  check(1, 20 * MIB, true)
  for (let id = 2; id <= 21; id++) check(id, 8 * MIB)
  expect(jobs.findByAccount(1)).toBeDefined()
  // The newest ones fit the memory; of accounts that hold as much, the oldest yields.
  const kept = Array.from({ length: 20 }, (_, n) => n + 2).filter((id) => jobs.findByAccount(id))
  expect(kept).toEqual([16, 17, 18, 19, 20, 21])
  // A small file makes no room at the cost of another small one.
  check(22, 1000)
  check(23, 1000)
  expect(jobs.findByAccount(22) && jobs.findByAccount(23)).toBeDefined()
  jobs.close()
})

test('a file whose memory others need is not kept by the queue', () => {
  const { jobs, check } = importJobs()
  const files = Array.from({ length: 12 }, (_, n) => {
    check(n + 1, 8 * MIB)
    return jobs.findByAccount(n + 1)
  })
  const bytes = files.reduce((sum, job) => sum + (job?.file.blob.size ?? 0), 0)
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThanOrEqual(48 * MIB)
  jobs.close()
})

test('an account has one import at a time', () => {
  const { jobs, check } = importJobs()
  check(1, 1000)
  expect(() => check(1, 1000)).toThrow(expect.objectContaining({ code: 'import_running' }))
  check(2, 1000)
  jobs.close()
})
