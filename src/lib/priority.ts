import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Niceness of all threads except the redirect threads, which have 0. `writes`: hits and changes
 * become durable; it gets a quarter of a core that a redirect thread uses fully. `normal`: a client
 * waits for the work; it gets a tenth. `background`: the work can wait; it gets a seventieth
 * (decision 013).
 */
const NICENESS = { writes: 5, normal: 10, background: 19 } as const

/**
 * Lowers the priority of the calling thread, never raises it. Only on Linux, where threads have a
 * priority of their own. Without permission nothing changes.
 */
export function setThreadPriority(priority: keyof typeof NICENESS): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.max(NICENESS[priority], getPriority(thread)))
  } catch {
    // A refused priority affects only speed.
  }
}
