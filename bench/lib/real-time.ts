import { ptr } from 'bun:ffi'
import { getPriority } from 'node:os'
import { cFunction } from '../../src/lib/c-library.ts'

/** Threads started later have an ordinary policy. */
const SCHED_RR_RESET_ON_FORK = 0x40000002
const LOWEST = 1

type SetScheduler = (thread: number, policy: number, parameters: number) => number

/**
 * For a thread that mostly sleeps and must run as soon as it wakes. Without the privilege for a
 * real-time policy, which usually only root has, it asks for short time slices.
 */
export function takeRealTimePolicy(): void {
  const args = ['i32', 'i32', 'u64'] as const
  const call = cFunction<SetScheduler>('sched_setscheduler', { args, returns: 'i32' })
  const parameters = new Int32Array([LOWEST])
  if (call?.(0, SCHED_RR_RESET_ON_FORK, Number(ptr(parameters))) !== 0) takeShortSlices()
}

/** The shortest time slice that Linux grants. */
const SLICE_NS = 100_000n
/** sched_setattr, for which the C library has no function of its own. */
const SCHED_SETATTR: Partial<Record<NodeJS.Architecture, number>> = { x64: 314, arm64: 274 }
/** Of Linux's sched.h: a policy that the operator chose stays. */
const SCHED_FLAG_KEEP_POLICY = 0x08n
/** Bytes of struct sched_attr as it was first. */
const ATTRIBUTES_BYTES = 48

type Syscall = (number: number, thread: number, attributes: number, flags: number) => number

/**
 * Asks EEVDF for a 0.1 ms time slice: a thread with short slices gets early deadlines and preempts
 * threads that run long. Linux 6.12 and later; older kernels ignore it.
 */
export function takeShortSlices(): void {
  const number = SCHED_SETATTR[process.arch]
  const args = ['i64', 'i64', 'u64', 'i64'] as const
  const call = cFunction<Syscall>('syscall', { args, returns: 'i64' })
  if (number === undefined || !call) return
  try {
    const attributes = new DataView(new ArrayBuffer(ATTRIBUTES_BYTES))
    attributes.setUint32(0, ATTRIBUTES_BYTES, true)
    attributes.setBigUint64(8, SCHED_FLAG_KEEP_POLICY, true)
    attributes.setInt32(16, getPriority(), true)
    attributes.setBigUint64(24, SLICE_NS, true)
    // A refusal is the result -1.
    call(number, 0, Number(ptr(attributes.buffer)), 0)
  } catch {
    // It only affects speed.
  }
}
