import { ptr } from 'bun:ffi'
import { cFunction } from './c-library.ts'

const MADV_DONTNEED = 4

/** Whole pages of a shared mapping of a file. The address is valid in every thread. */
export interface Pages {
  address: number
  bytes: number
}

/**
 * Removes pages from this process's memory. Their contents stay in the file, unsaved changes
 * included, and are mapped again at the next access. Linux only: elsewhere nothing changes.
 */
export function releasePages({ address, bytes }: Pages): void {
  madvise ??= cFunction('madvise', { args: ['u64', 'u64', 'i32'], returns: 'i32' }) ?? (() => -1)
  madvise(address, bytes, MADV_DONTNEED)
}

/** Address of the first byte of `mapping`. */
export const pointerTo = (mapping: Uint8Array): number => Number(ptr(mapping))

type Madvise = (address: number, bytes: number, advice: number) => number
let madvise: Madvise | undefined
