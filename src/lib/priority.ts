import { ptr } from 'bun:ffi'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { cFunction } from './c-library.ts'

/**
 * Who goes first where threads share a core: the one that answers redirects. On Linux alone, where
 * threads have priorities of their own; elsewhere, or where it is not allowed, nothing changes.
 */

/** For what somebody waits for, though no visitor: beside a busy thread, a quarter of a core. */
export const giveWay = (): void => becomeNice(5)

/** For what can wait, in the service and in programs beside it: a thirtieth of a core. */
export const stayBehind = (): void => becomeNice(15)

/** No thread becomes less nice than it was. */
function becomeNice(nice: number): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.max(nice, getPriority(thread)))
  } catch {
    // Only a matter of speed.
  }
}

/** The shortest turn that Linux grants. */
const TURN_NS = 100_000n
/** sched_setattr, for which the C library has no function of its own. */
const SCHED_SETATTR: Partial<Record<NodeJS.Architecture, number>> = { x64: 314, arm64: 274 }
/** Of Linux's sched.h: a policy that the operator chose stays. */
const SCHED_FLAG_KEEP_POLICY = 0x08n
/** Bytes of struct sched_attr as it was first. */
const ATTRIBUTES_BYTES = 48

type Syscall = (number: number, thread: number, attributes: number, flags: number) => number

/**
 * For the thread that answers redirects, before it starts any other, since those inherit it: short
 * turns. Whoever has them need not wait for the end of another's long turn, and nobody waits long
 * for the end of theirs. Linux 6.12 and later (EEVDF); older kernels pay no heed.
 */
export function takeShortTurns(): void {
  const number = SCHED_SETATTR[process.arch]
  const args = ['i64', 'i64', 'u64', 'i64'] as const
  const call = cFunction<Syscall>('syscall', { args, returns: 'i64' })
  if (number === undefined || !call) return
  try {
    const attributes = new DataView(new ArrayBuffer(ATTRIBUTES_BYTES))
    attributes.setUint32(0, ATTRIBUTES_BYTES, true)
    attributes.setBigUint64(8, SCHED_FLAG_KEEP_POLICY, true)
    attributes.setInt32(16, getPriority(), true)
    attributes.setBigUint64(24, TURN_NS, true)
    // Where it is refused, it returns -1.
    call(number, 0, Number(ptr(attributes.buffer)), 0)
  } catch {
    // Only a matter of speed.
  }
}
