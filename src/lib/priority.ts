import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** A thread in the background: it takes what processor time the others leave. */
const NICE = 15

/**
 * Makes the calling thread give way to the others of its process. On Linux alone, where threads
 * have priorities of their own; elsewhere, or where it is not allowed, it changes nothing.
 */
export function giveWay(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.max(NICE, getPriority(thread)))
  } catch {
    // Only a matter of speed.
  }
}
