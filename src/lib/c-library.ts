import { dlopen, type FFIFunction, ptr } from 'bun:ffi'

/** File names of the C library: glibc and musl. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}.so.1`]

const loaded = new Map<string, unknown>()

/**
 * A function of the system's C library. A name must always come with the same signature. Undefined
 * if the function is missing, and on systems other than Linux. Loaded once, because loading uses a
 * descriptor and memory.
 */
export function cFunction<Call extends (...args: never[]) => unknown>(
  name: string,
  signature: FFIFunction,
): Call | undefined {
  if (!loaded.has(name)) loaded.set(name, load(name, signature))
  return loaded.get(name) as Call | undefined
}

function load(name: string, signature: FFIFunction): unknown {
  for (const library of process.platform === 'linux' ? LIBRARIES : []) {
    try {
      return dlopen(library, { [name]: signature }).symbols[name]
    } catch {
      // Try the other name.
    }
  }
  return undefined
}

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
