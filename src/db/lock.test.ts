import { expect, test } from 'bun:test'
import { temporaryFolder } from '../../test/support/folder.ts'
import { FolderLock } from './lock.ts'

test('a start waits for a command that works on the data folder', async () => {
  using folder = temporaryFolder()
  const command = FolderLock.claim(folder.path)
  const start = FolderLock.claimAfterCommand(folder.path)
  command.release()
  using _lock = await start
  expect(FolderLock.tryClaim(folder.path)).toBeUndefined()
})

test('a second service is refused', async () => {
  using folder = temporaryFolder()
  using _lock = FolderLock.claim(folder.path)
  await expect(FolderLock.claimAfterCommand(folder.path)).rejects.toThrow(
    `is served by process ${process.pid} already`,
  )
})
