import { dlopen, type FFIFunction } from 'bun:ffi'

/** Each C library's own name: glibc's and musl's. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}.so.1`]

/** A function of the system's C library. Undefined where there is none, or not on Linux. */
export function cFunction<Call extends (...args: never[]) => unknown>(
  name: string,
  signature: FFIFunction,
): Call | undefined {
  for (const library of process.platform === 'linux' ? LIBRARIES : []) {
    try {
      return dlopen(library, { [name]: signature }).symbols[name] as unknown as Call
    } catch {
      // The other library's name, or none.
    }
  }
  return undefined
}
