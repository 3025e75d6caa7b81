import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
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

/** The folder of the stored images. It is renamed at times, so it must not be a mount point. */
export const imageFolder = (dataDir: string): string => join(dataDir, 'cdn', 'qr')

/**
 * Removes all images in one step: when this returns, no path leads to an old image, not even after
 * a power loss. The next `QrFiles.open` of the folder deletes them.
 */
export function retireImages(dir: string): void {
  if (!existsSync(dir)) return
  renameSync(dir, `${dir}${RETIRED}${randomUUID()}`)
  flushToDisk(dirname(dir))
}

const RETIRED = '.retired-'

/**
 * Stored images, `<code>.png` in one folder. A file under its final name is always whole: it is
 * written as `.unfinished`, flushed to the disk and renamed. All operations except `open` are
 * synchronous. Only one object at a time may write to a folder.
 */
export class QrFiles {
  readonly #dir: string
  readonly #unfinished: string

  constructor(dir: string) {
    this.#dir = dir
    this.#unfinished = join(dir, '.unfinished')
  }

  /**
   * Creates the folder and removes what a kill left unfinished. Resolves when retired images are
   * deleted; no caller needs to await it. Rejects if the disk refuses: the first write and the next
   * `open` retry.
   */
  async open(): Promise<void> {
    this.#removeUnfinished()
    createFolder(this.#dir)
    const parent = dirname(this.#dir)
    const prefix = `${basename(this.#dir)}${RETIRED}`
    for (const name of readdirSync(parent)) {
      if (name.startsWith(prefix)) await rm(join(parent, name), { recursive: true, force: true })
    }
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
    try {
      // An operator may have removed the folder, to have the images rendered again.
      createFolder(this.#dir)
      writePublic(this.#unfinished, bytes)
      renameSync(this.#unfinished, path)
    } catch (error) {
      this.#removeUnfinished()
      throw error
    }
  }

  /** Removes the image of a code, if it exists. */
  remove(code: string): void {
    rmSync(this.path(code), { force: true })
  }

  #removeUnfinished(): void {
    rmSync(this.#unfinished, { force: true })
  }
}

/**
 * Images are public: a web server may read them as another user through a mount of `cdn`. The rest
 * of the data folder is private. The modes are set explicitly, because the umask of the process
 * would make images private as well.
 */
const IMAGE_MODE = 0o644
const FOLDER_MODE = 0o755

function createFolder(dir: string): void {
  // Undefined if all existed: their modes are the operator's.
  const first = mkdirSync(dir, { recursive: true })
  for (const folder of [dirname(dir), dir]) {
    if (first && folder.length >= first.length) publish(() => chmodSync(folder, FOLDER_MODE))
  }
}

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
