import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own for a test, gone at the end of its block. */
export function temporaryFolder(parent = tmpdir()): Disposable & { path: string } {
  const path = mkdtempSync(join(parent, 'hopcode-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** One whose files are in memory, where the machine has that: no sync there waits for a disk. */
export const temporaryFolderInMemory = () =>
  temporaryFolder(existsSync('/dev/shm') ? '/dev/shm' : undefined)
