import { ptr } from 'bun:ffi'
import { cFunction } from './c-library.ts'

const MADV_DONTNEED = 4

type Madvise = (address: number, bytes: number, advice: number) => number

/**
 * Removes whole pages of a shared mapping of a file from this process's memory. Their contents stay
 * in the file, unsaved changes included, and are mapped again at the next access. Linux only:
 * elsewhere nothing changes.
 */
export function releasePages({ address, bytes }: { address: number; bytes: number }): void {
  const args = ['u64', 'u64', 'i32'] as const
  const madvise = cFunction<Madvise>('madvise', { args, returns: 'i32' })
  madvise?.(address, bytes, MADV_DONTNEED)
}

/** Pointer to the first byte of `mapping`. */
export const pointerTo = (mapping: Uint8Array): number => Number(ptr(mapping))
