import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Makes what was written to a file, or made or renamed in a folder, outlast a loss of power. */
export function flushToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
