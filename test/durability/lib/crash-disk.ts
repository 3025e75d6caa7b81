import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SeededRandom } from './seeded-random.ts'
import type { TraceEvent } from './trace.ts'

/** What a loss of power leaves of what was not synced. */
export type Remains =
  /** Nothing: the least that a file system may keep. */
  | 'synced'
  /** Some 512-byte sectors of it, in any order, and the first few changes of names. */
  | 'torn'
  /** All: as after kill -9. */
  | 'written'

const SECTOR_BYTES = 512

type Change = { at: number } & (
  | { kind: 'write'; offset: number; bytes: Uint8Array }
  | { kind: 'truncate'; size: number }
)

interface Inode {
  synced: Content
  pending: Change[]
}

interface NameChange {
  at: number
  path: string
  from?: string
  /** What the name leads to from now on; undefined takes it away. */
  inode: Inode | undefined
}

/**
 * A disk that a loss of power can meet at any event. Contents last from a sync of the file on, and
 * names from a sync of their folder on. Times are numbers of events.
 */
export class CrashDisk {
  readonly #root: string
  readonly #names = new Map<string, Inode>()
  readonly #syncedNames = new Map<string, Inode>()
  #pendingNames: NameChange[] = []

  /** Everything below `root` counts; `files` are there and synced, by paths within it. */
  constructor(root: string, files: ReadonlyMap<string, Uint8Array>) {
    this.#root = `${root}/`
    for (const [path, bytes] of files) {
      const inode = { synced: new Content(bytes), pending: [] }
      this.#names.set(this.#root + path, inode)
      this.#syncedNames.set(this.#root + path, inode)
    }
  }

  apply(event: TraceEvent, at: number): void {
    if (event.kind === 'sync') this.#sync(event.path, event.since)
    else if (event.kind !== 'send' && event.path.startsWith(this.#root)) this.#change(event, at)
  }

  /**
   * The files as a loss of power leaves them now, by paths within the root: to be read before the
   * next event.
   */
  crash(remains: Remains, random: SeededRandom): Map<string, Uint8Array> {
    const names = new Map(this.#syncedNames)
    const kept = {
      synced: 0,
      torn: random.below(this.#pendingNames.length + 1),
      written: this.#pendingNames.length,
    }[remains]
    for (const change of this.#pendingNames.slice(0, kept)) changeName(names, change)
    const files = new Map<string, Uint8Array>()
    for (const [path, { synced, pending }] of names) {
      const content = pending.length > 0 ? synced.copy() : synced
      if (remains === 'torn') tear(content, pending, random)
      if (remains === 'written') for (const change of pending) content.apply(change)
      files.set(path.slice(this.#root.length), content.bytes())
    }
    return files
  }

  #change(event: Exclude<TraceEvent, { kind: 'send' | 'sync' }>, at: number): void {
    const { path } = event
    if (event.kind === 'create') {
      const inode = this.#names.get(path) ?? { synced: new Content(), pending: [] }
      if (!this.#names.has(path)) this.#rename({ at, path, inode })
      if (event.empties) inode.pending.push({ at, kind: 'truncate', size: 0 })
    } else if (event.kind === 'write' || event.kind === 'truncate') {
      // A file that has no name any more is nobody's concern.
      this.#names.get(path)?.pending.push({ ...event, at })
    } else if (event.kind === 'unlink') {
      this.#rename({ at, path, inode: undefined })
    } else if (event.kind === 'link') {
      this.#rename({ at, path, inode: this.#names.get(event.from) })
    } else if (event.kind === 'rename') {
      this.#rename({ at, path, from: event.from, inode: this.#names.get(event.from) })
    }
  }

  #rename(change: NameChange): void {
    changeName(this.#names, change)
    this.#pendingNames.push(change)
  }

  #sync(path: string, since: number): void {
    const inode = this.#names.get(path)
    if (inode) {
      for (const change of inode.pending) if (change.at < since) inode.synced.apply(change)
      inode.pending = inode.pending.filter(({ at }) => at >= since)
      return
    }
    const lasts = (change: NameChange) => change.at < since && dirname(change.path) === path
    for (const change of this.#pendingNames)
      if (lasts(change)) changeName(this.#syncedNames, change)
    this.#pendingNames = this.#pendingNames.filter((change) => !lasts(change))
  }
}

/** Writes a crashed disk's files below a folder. */
export function restore(files: ReadonlyMap<string, Uint8Array>, folder: string): void {
  for (const [path, bytes] of files) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes.subarray(0, lengthWithoutZeros(bytes)))
    truncateSync(file, bytes.length)
  }
}

const BLOCK = Buffer.alloc(1024 * 1024)

/** Without the whole blocks of zeros at the end, which a file has as well unwritten. */
export function lengthWithoutZeros(bytes: Uint8Array): number {
  let length = bytes.length
  while (length >= BLOCK.length && BLOCK.equals(bytes.subarray(length - BLOCK.length, length))) {
    length -= BLOCK.length
  }
  return length
}

function changeName(names: Map<string, Inode>, { path, from, inode }: NameChange): void {
  if (from !== undefined) names.delete(from)
  if (inode) names.set(path, inode)
  else names.delete(path)
}

/** What comes after a truncation that is lost is lost with it: its blocks had no other place. */
function tear(content: Content, pending: readonly Change[], random: SeededRandom): void {
  const probability = [0.1, 0.5, 0.9][random.below(3)] as number
  for (const change of pending) {
    if (change.kind === 'truncate') {
      if (!random.chance(probability)) return
      content.apply(change)
      continue
    }
    const { at, offset, bytes } = change
    for (let start = 0; start < bytes.length; ) {
      // Sectors lie where the file has them, whatever a write's own bounds are.
      const end = Math.min(bytes.length, start + SECTOR_BYTES - ((offset + start) % SECTOR_BYTES))
      const sector = bytes.subarray(start, end)
      if (random.chance(probability)) {
        content.apply({ at, kind: 'write', offset: offset + start, bytes: sector })
      }
      start = end
    }
  }
}

/** The bytes of a file, cheap to append to. */
class Content {
  #buffer: Uint8Array
  #length: number

  constructor(bytes: Uint8Array = new Uint8Array()) {
    this.#buffer = bytes
    this.#length = bytes.length
  }

  apply(change: Change): void {
    if (change.kind === 'truncate') {
      this.#buffer = this.#buffer.slice(0, Math.min(this.#length, change.size))
      this.#grow(change.size)
      this.#length = change.size
    } else {
      const end = change.offset + change.bytes.length
      this.#grow(end)
      this.#length = Math.max(this.#length, end)
      this.#buffer.set(change.bytes, change.offset)
    }
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  copy(): Content {
    return new Content(this.bytes().slice())
  }

  #grow(length: number): void {
    if (length <= this.#buffer.length) return
    const larger = new Uint8Array(Math.max(length, this.#buffer.length * 2))
    larger.set(this.bytes())
    this.#buffer = larger
  }
}
