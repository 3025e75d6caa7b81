import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fchmodSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { assert } from '../lib/assert.ts'
import { flushToDisk } from '../lib/flush.ts'

interface QrFilesOptions {
  /** The folder of the images. Its parent must allow renaming it: it is no mount point. */
  dir: string
}

/**
 * The stored images, `<code>.png` in one folder. A file under its final name is always whole: it is
 * written in `.unfinished` inside the folder, flushed to the disk and renamed. Everything but
 * deleting retired images is synchronous. One object at a time may write to a folder; any number
 * may ask for paths.
 */
export class QrFiles {
  readonly #dir: string
  readonly #unfinished: string
  /** Settles with the latest deletion and never rejects: each caller hears of its own failure. */
  #deleting: Promise<void> = Promise.resolve()

  constructor({ dir }: QrFilesOptions) {
    this.#dir = dir
    this.#unfinished = join(dir, '.unfinished')
  }

  /**
   * Makes the folder and clears what a crash left unfinished: for the one that writes, before its
   * first write. The promise is of `deleteRetired`; nothing needs to wait for it. Rejects if the
   * disk refuses: the first write tries again.
   */
  async open(): Promise<void> {
    rmSync(this.#unfinished, { recursive: true, force: true })
    this.#makeFolders()
    await this.deleteRetired()
  }

  /** Where the image of a code is or would be. Throws if `code` is not 6 to 20 of A–Z and 0–9. */
  path(code: string): string {
    // A code comes from a URL: nothing else may ever become part of a path.
    assert(/^[A-Z0-9]{6,20}$/.test(code), 'the name of a QR file is a code')
    return join(this.#dir, `${code}.png`)
  }

  /**
   * Stores the image of a code in place of any earlier one. Changes nothing if the disk refuses.
   */
  write(code: string, bytes: Uint8Array): void {
    const path = this.path(code)
    const unfinished = join(this.#unfinished, `${code}-${randomUUID()}`)
    try {
      this.#writeFlushed(unfinished, bytes)
      renameSync(unfinished, path)
    } catch (error) {
      rmSync(unfinished, { force: true })
      throw error
    }
  }

  /** Removes the image of a code. One that does not exist counts as removed. */
  remove(code: string): void {
    rmSync(this.path(code), { force: true })
  }

  /**
   * Takes all images away in one step: when this returns, no path leads to an old image, not even
   * after a loss of power. The promise is of `deleteRetired`; nothing needs to wait for it.
   */
  retireAll(): Promise<void> {
    this.#makeFolders()
    renameSync(this.#dir, `${this.#dir}${RETIRED}${randomUUID()}`)
    this.#makeFolders()
    flushToDisk(dirname(this.#dir))
    return this.deleteRetired()
  }

  /**
   * Deletes images that were retired, before a crash too, one folder after the other. Rejects if
   * the disk refuses; the next `open` tries again.
   */
  deleteRetired(): Promise<void> {
    const deleted = this.#deleting.then(() => this.#deleteFolders())
    this.#deleting = deleted.catch(() => {})
    return deleted
  }

  async #deleteFolders(): Promise<void> {
    const parent = dirname(this.#dir)
    const prefix = `${basename(this.#dir)}${RETIRED}`
    for (const name of readdirSync(parent)) {
      if (name.startsWith(prefix)) await rm(join(parent, name), { recursive: true, force: true })
    }
  }

  #writeFlushed(path: string, bytes: Uint8Array): void {
    try {
      writePublic(path, bytes)
    } catch (error) {
      if (!isMissing(error)) throw error
      // Whoever empties the data folder of a running server wants the images made anew.
      this.#makeFolders()
      writePublic(path, bytes)
    }
  }

  #makeFolders(): void {
    // Undefined where all are there: their modes are the operator's.
    const first = mkdirSync(this.#unfinished, { recursive: true })
    for (const folder of [dirname(this.#dir), this.#dir]) {
      if (first && folder.length >= first.length) publish(() => chmodSync(folder, FOLDER_MODE))
    }
  }
}

/**
 * Images are public, and a web server may read them as another user through a mount of `cdn`; the
 * rest of the data folder is closed to it. The umask of the process would close them too.
 */
const IMAGE_MODE = 0o644
const FOLDER_MODE = 0o755

function publish(change: () => void): void {
  try {
    change()
  } catch {
    // A file system without modes: what other users may read is up to its mount.
  }
}

function writePublic(path: string, bytes: Uint8Array): void {
  const descriptor = openSync(path, 'wx', IMAGE_MODE)
  try {
    publish(() => fchmodSync(descriptor, IMAGE_MODE))
    writeFileSync(descriptor, bytes, { flush: true })
  } finally {
    closeSync(descriptor)
  }
}

const RETIRED = '.retired-'

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
