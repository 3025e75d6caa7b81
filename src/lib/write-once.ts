import { linkSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { flushToDisk } from './flush.ts'

/** Writes a complete private file, or keeps the one that another process has written first. */
export function writeOnce(file: string, text: string): void {
  const beside = `${file}.${process.pid}.tmp`
  rmSync(beside, { force: true })
  writeFileSync(beside, text, { flag: 'wx', mode: 0o600, flush: true })
  try {
    linkSync(beside, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(beside)
  }
  // The directory entry must survive a power loss too, because data stored next depends on it.
  flushToDisk(dirname(file))
}
