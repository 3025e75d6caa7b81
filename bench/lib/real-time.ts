import { ptr } from 'bun:ffi'
import { cFunction } from '../../src/lib/c-library.ts'
import { takeShortTurns } from '../../src/lib/priority.ts'

/** Threads that it starts are ordinary ones. */
const SCHED_RR_RESET_ON_FORK = 0x40000002
const LOWEST = 1

type SetScheduler = (thread: number, policy: number, parameters: number) => number

/**
 * For a thread that mostly sleeps and must be punctual: it runs the moment it wakes, whoever has
 * the core. Where that right is missing, as for most users but root, it takes short turns.
 */
export function takeRealTimeTurns(): void {
  const args = ['i32', 'i32', 'u64'] as const
  const call = cFunction<SetScheduler>('sched_setscheduler', { args, returns: 'i32' })
  const parameters = new Int32Array([LOWEST])
  if (call?.(0, SCHED_RR_RESET_ON_FORK, Number(ptr(parameters))) !== 0) takeShortTurns()
}
