import { dlopen, ptr } from 'bun:ffi'

/** Each C library's own name: glibc's and musl's. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}.so.1`]
const MADV_DONTNEED = 4
const NOTHING = () => {}

/**
 * For a shared mapping of a file: a function that takes whole pages out of this process's memory.
 * They stay in the file, dirty ones too, and come back when they are touched. `start` and `end` are
 * bytes from the mapping's beginning; `start` must be the first of a page. On Linux alone;
 * elsewhere, or where it is not allowed, it changes nothing.
 */
export function pageReleaser(mapping: Uint8Array): (start: number, end: number) => void {
  if (process.platform !== 'linux') return NOTHING
  for (const library of LIBRARIES) {
    try {
      const { symbols } = dlopen(library, {
        madvise: { args: ['u64', 'u64', 'i32'], returns: 'i32' },
      })
      const address = Number(ptr(mapping))
      return (start, end) => {
        symbols.madvise(address + start, end - start, MADV_DONTNEED)
      }
    } catch {
      // Only a matter of memory.
    }
  }
  return NOTHING
}
