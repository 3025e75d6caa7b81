import { ptr } from 'bun:ffi'
import { cFunction } from './c-library.ts'

const MADV_DONTNEED = 4

/** Whole pages of a shared mapping of a file. Any thread of the process may speak of them. */
export interface Pages {
  address: number
  bytes: number
}

/**
 * Takes pages out of this process's memory. They stay in the file, dirty ones too, and come back
 * when they are touched. On Linux alone; elsewhere, or where it is not allowed, it changes nothing.
 */
export function releasePages({ address, bytes }: Pages): void {
  // Where there is no madvise, the pages only take memory.
  madvise ??= cFunction('madvise', { args: ['u64', 'u64', 'i32'], returns: 'i32' }) ?? (() => -1)
  madvise(address, bytes, MADV_DONTNEED)
}

/** Where `mapping` begins. */
export const addressOf = (mapping: Uint8Array): number => Number(ptr(mapping))

type Madvise = (address: number, bytes: number, advice: number) => number
let madvise: Madvise | undefined
