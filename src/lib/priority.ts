import { readdirSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Niceness of all threads except the redirect threads, which have 0. `writes`: hits and changes
 * become durable; it gets a quarter of a core that a redirect thread uses fully. `normal`: a client
 * waits for the work; it gets a tenth. `background`: the work can wait; it gets a seventieth.
 */
const NICENESS = { writes: 5, normal: 10, background: 19 } as const

/**
 * Lowers the priority of the calling thread, never raises it. Only on Linux, where threads have a
 * priority of their own. Without permission nothing changes.
 */
export function setThreadPriority(priority: keyof typeof NICENESS): void {
  try {
    lower(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), priority)
  } catch {
    // A refused priority affects only speed.
  }
}

/** The same for all threads of the process, those of the engine included. */
export function setProcessPriority(priority: keyof typeof NICENESS): void {
  try {
    for (const thread of readdirSync('/proc/self/task')) lower(Number(thread), priority)
  } catch {
    // A thread may have ended meanwhile.
  }
}

function lower(thread: number, priority: keyof typeof NICENESS): void {
  setPriority(thread, Math.max(NICENESS[priority], getPriority(thread)))
}
