import { closeSync, fsyncSync, openSync } from 'node:fs'

/** fsync: what was written to a file, or created or renamed in a folder, survives a power loss. */
export function flushToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
