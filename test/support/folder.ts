import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own for a test, gone at the end of its block. */
export function temporaryFolder(parent = tmpdir()): Disposable & { path: string } {
  const path = mkdtempSync(join(parent, 'hopcode-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const MEMORY = '/dev/shm'
/** The tests fill some 50 MiB of it, and a container has 64 MiB by default. */
const MEMORY_LEAST_BYTES = 256 * 1024 ** 2

/** One whose files are in memory, where the machine has that: no sync there waits for a disk. */
export function temporaryFolderInMemory(): ReturnType<typeof temporaryFolder> {
  if (!existsSync(MEMORY)) return temporaryFolder()
  const { bavail, bsize } = statfsSync(MEMORY)
  return temporaryFolder(bavail * bsize < MEMORY_LEAST_BYTES ? undefined : MEMORY)
}
