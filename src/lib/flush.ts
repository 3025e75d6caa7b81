import { fsyncSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { openFile } from './open-file.ts'

/** fsync: what was written to a file, or created or renamed in a folder, survives a power loss. */
export function flushToDisk(path: string): void {
  using file = openFile(path, 'r')
  fsyncSync(file.descriptor)
}

/** Writes a complete private file. A kill or a full disk leaves none. */
export function writeOnce(file: string, text: string): void {
  const beside = `${file}.tmp`
  rmSync(beside, { force: true })
  writeFileSync(beside, text, { flag: 'wx', mode: 0o600, flush: true })
  renameSync(beside, file)
  // The directory entry must survive a power loss too, because data stored next depends on it.
  flushToDisk(dirname(file))
}
