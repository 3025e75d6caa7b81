import { closeSync, openSync, rmSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../support/folder.ts'

const BLOCK_BYTES = 4096

/** A file system in memory that a test can fill. Only root may mount one. */
export class SmallDisk implements Disposable {
  readonly path: string
  readonly #folder = temporaryFolder()
  readonly #filler: string

  constructor(mebibytes: number) {
    this.path = this.#folder.path
    this.#filler = join(this.path, 'filler')
    const options = ['-t', 'tmpfs', '-o', `size=${mebibytes}M,mode=0700`]
    const { exitCode, stderr } = Bun.spawnSync(['mount', ...options, 'tmpfs', this.path])
    if (exitCode !== 0) throw new Error(`no file system was mounted: ${stderr}`)
  }

  /** Fills it, apart from the last `freeBytes`, a multiple of 4096. */
  fill(freeBytes = 0): void {
    const descriptor = openSync(this.#filler, 'a')
    try {
      for (;;) writeSync(descriptor, Buffer.alloc(BLOCK_BYTES))
    } catch {
      // It is full.
    } finally {
      closeSync(descriptor)
    }
    truncateSync(this.#filler, statSync(this.#filler).size - freeBytes)
  }

  /** Makes room again. */
  empty(): void {
    rmSync(this.#filler, { force: true })
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path)
    return bavail * bsize
  }

  remount(options: string): void {
    const words = ['mount', '-o', `remount,${options}`, this.path]
    const { exitCode, stderr } = Bun.spawnSync(words)
    if (exitCode !== 0) throw new Error(`it was not mounted again: ${stderr}`)
  }

  [Symbol.dispose](): void {
    Bun.spawnSync(['umount', '--lazy', this.path])
    this.#folder[Symbol.dispose]()
  }
}

export function canMount(): boolean {
  try {
    new SmallDisk(1)[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}
