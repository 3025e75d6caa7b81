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

/** The folder of the stored images. */
export const imageFolder = (dataDir: string): string => join(dataDir, 'cdn', 'qr')

interface QrFilesOptions {
  /** The folder of the images. It is renamed at times, so it must not be a mount point. */
  dir: string
}

/**
 * Stored images, `<code>.png` in one folder. A file under its final name is always whole: it is
 * written in `.unfinished` inside the folder, flushed to the disk and renamed. All operations are
 * synchronous, except for deleting retired images. Only one object at a time may write to a folder.
 */
export class QrFiles {
  readonly #dir: string
  readonly #unfinished: string
  /** Settles with the latest deletion and never rejects: callers get promises of their own. */
  #deleting: Promise<void> = Promise.resolve()

  constructor({ dir }: QrFilesOptions) {
    this.#dir = dir
    this.#unfinished = join(dir, '.unfinished')
  }

  /**
   * Creates the folder and removes unfinished files of a crash. The writing object calls it before
   * its first write. Resolves when retired images are deleted; no caller needs to await it. Rejects
   * if the disk refuses: the first write retries.
   */
  async open(): Promise<void> {
    rmSync(this.#unfinished, { recursive: true, force: true })
    this.#createFolders()
    await this.#deleteRetired()
  }

  /** Path of a code's image, stored or not. Throws if `code` is not 6 to 20 of A–Z and 0–9. */
  path(code: string): string {
    // The code comes from a URL, and must not add anything else to a path.
    assert(/^[A-Z0-9]{6,20}$/.test(code), 'the name of a QR file is a code')
    return join(this.#dir, `${code}.png`)
  }

  /**
   * Stores the image of a code, and replaces an earlier one. Changes nothing if the disk refuses.
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

  /** Removes the image of a code, if it exists. */
  remove(code: string): void {
    rmSync(this.path(code), { force: true })
  }

  /**
   * Removes all images in one step: when this returns, no path leads to an old image, not even
   * after a power loss. Resolves when they are deleted; no caller needs to await it.
   */
  retireAll(): Promise<void> {
    this.#createFolders()
    renameSync(this.#dir, `${this.#dir}${RETIRED}${randomUUID()}`)
    this.#createFolders()
    flushToDisk(dirname(this.#dir))
    return this.#deleteRetired()
  }

  /**
   * Deletes retired images, also those from before a crash, one folder after the other. Rejects if
   * the disk refuses; the next `open` retries.
   */
  #deleteRetired(): Promise<void> {
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
      // An operator has emptied the folder while the service runs, to have the images rendered
      // again.
      this.#createFolders()
      writePublic(path, bytes)
    }
  }

  #createFolders(): void {
    // Undefined if all existed: their modes are the operator's.
    const first = mkdirSync(this.#unfinished, { recursive: true })
    for (const folder of [dirname(this.#dir), this.#dir]) {
      if (first && folder.length >= first.length) publish(() => chmodSync(folder, FOLDER_MODE))
    }
  }
}

/**
 * Images are public: a web server may read them as another user through a mount of `cdn`. The rest
 * of the data folder is private. The modes are set explicitly, because the umask of the process
 * would make images private as well.
 */
const IMAGE_MODE = 0o644
const FOLDER_MODE = 0o755

function publish(change: () => void): void {
  try {
    change()
  } catch {
    // A file system without modes: its mount decides what other users may read.
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
