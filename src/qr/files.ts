import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  fchmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  type StatsFs,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { assert } from '../lib/assert.ts'
import { flushToDisk } from '../lib/flush.ts'
import { openFile } from '../lib/open-file.ts'

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

/** Part of a disk's blocks, and of its inodes, that images leave to links and hits. */
const FREE_MIN = 0.1

export type StatFs = (path: string) => Pick<StatsFs, 'blocks' | 'bavail' | 'files' | 'ffree'>

/**
 * Whether the disk of the folder has room for further images; if not, they are rendered on demand.
 * True where that cannot be read. File systems without a fixed number of inodes have 0 `files`.
 */
export function hasImageRoom(dir: string, statfs: StatFs = statfsSync): boolean {
  try {
    const { blocks, bavail, files, ffree } = statfs(dir)
    return bavail >= blocks * FREE_MIN && ffree >= files * FREE_MIN
  } catch {
    return true
  }
}

const RETIRED = '.retired-'
const OF_DOMAIN = 'domain-'

/**
 * Stored images, `<code>.png` in one folder; those of links on another domain than the primary one
 * in a folder of it, so that no image survives a change of the domain, not even where a change is
 * applied while no service runs. A file under its final name is always whole: it is written as
 * `.unfinished`, flushed to the disk and renamed. All operations except `open` are
 * synchronous. Only one object at a time may write to a folder.
 */
export class QrFiles {
  readonly #dir: string
  readonly #unfinished: string
  /** The folders of domains that exist. Undefined: not read yet. */
  #domainFolders: Set<string> | undefined

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

  /**
   * Path of a code's image, stored or not. `domain`: the host of the link, null for the primary
   * one. Throws if `code` is not 6 to 20 of A–Z and 0–9.
   */
  path(code: string, domain: string | null = null): string {
    // The code comes from a URL, and must not add anything else to a path.
    assert(/^[A-Z0-9]{6,20}$/.test(code), 'the name of a QR file is a code')
    if (domain === null) return join(this.#dir, `${code}.png`)
    assert(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(domain), 'a domain is a host name')
    return join(this.#dir, `${OF_DOMAIN}${domain}`, `${code}.png`)
  }

  /**
   * Stores the image of a code, and replaces an earlier one. Changes nothing if the disk refuses.
   */
  write(code: string, bytes: Uint8Array, domain: string | null = null): void {
    const path = this.path(code, domain)
    try {
      // An operator may have removed the folder, to have the images rendered again.
      createFolder(this.#dir)
      if (domain !== null) {
        createFolder(dirname(path))
        this.#foldersOfDomains().add(basename(dirname(path)))
      }
      writePublic(this.#unfinished, bytes)
      renameSync(this.#unfinished, path)
    } catch (error) {
      this.#removeUnfinished()
      throw error
    }
  }

  /** Removes the images of a code, if they exist. */
  remove(code: string): void {
    const path = this.path(code)
    rmSync(path, { force: true })
    for (const folder of this.#foldersOfDomains()) {
      rmSync(join(this.#dir, folder, basename(path)), { force: true })
    }
  }

  #foldersOfDomains(): Set<string> {
    if (this.#domainFolders) return this.#domainFolders
    const all = existsSync(this.#dir) ? readdirSync(this.#dir, { withFileTypes: true }) : []
    const found = all.filter((one) => one.isDirectory() && one.name.startsWith(OF_DOMAIN))
    this.#domainFolders = new Set(found.map(({ name }) => name))
    return this.#domainFolders
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
  using file = openFile(path, 'wx', IMAGE_MODE)
  publish(() => fchmodSync(file.descriptor, IMAGE_MODE))
  writeFileSync(file.descriptor, bytes, { flush: true })
}
