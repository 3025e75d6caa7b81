import { ptr } from 'bun:ffi'
import { cFunction } from './c-library.ts'

const MADV_DONTNEED = 4
/** Linux 5.14 and later. */
const MADV_POPULATE_WRITE = 23

/** Whole pages of a shared mapping of a file. Any thread of the process may speak of them. */
export interface Pages {
  address: number
  bytes: number
}

/**
 * Takes pages out of this process's memory. They stay in the file, dirty ones too, and come back
 * when they are touched. On Linux alone; elsewhere, or where it is not allowed, it changes nothing.
 */
export const releasePages = (pages: Pages): void => advise(pages, MADV_DONTNEED)

/**
 * Does what the first write to each page would have to wait for: the file system may make it wait
 * for a commit of its own. Their content stays. Changes nothing where it cannot be done.
 */
export const populatePages = (pages: Pages): void => advise(pages, MADV_POPULATE_WRITE)

/** Where `mapping` begins. */
export const addressOf = (mapping: Uint8Array): number => Number(ptr(mapping))

type Madvise = (address: number, bytes: number, advice: number) => number
let madvise: Madvise | undefined

function advise({ address, bytes }: Pages, advice: number): void {
  // Where there is none, it was only a matter of memory and time.
  madvise ??= cFunction('madvise', { args: ['u64', 'u64', 'i32'], returns: 'i32' }) ?? (() => -1)
  madvise(address, bytes, advice)
}
