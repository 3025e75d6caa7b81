import { deserialize, serialize } from 'bun:jsc'
import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { cFunction } from '../lib/c-library.ts'
import { openTrials } from '../qr/trial.ts'
import type { TrialCall } from '../qr/trials.ts'

/** A typical trial needs 1 to 1.5 seconds, including the start of its process. */
const CPU_SECONDS_MAX = 5
const RLIMIT_CPU = 0

/** Runs one trial for `QrTrials`: a call on standard input, its result on standard output. */
export async function runTrial(): Promise<void> {
  limitCpu(CPU_SECONDS_MAX)
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  try {
    // When memory is short, Linux ends this process and not the service.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Another system, or one without /proc.
  }
  const call: TrialCall = deserialize(await Bun.stdin.arrayBuffer())
  const trials = await openTrials()
  const result =
    call.name === 'tryLogo' ? await trials.tryLogo(call.args) : await trials.isReadable(call.args)
  await Bun.write(Bun.stdout, serialize(result))
}

/** The kernel kills this process when it has used so much CPU time. Linux only. */
function limitCpu(seconds: number): void {
  type SetLimit = (resource: number, limits: BigUint64Array) => number
  const setLimit = cFunction<SetLimit>('setrlimit', { args: ['i32', 'ptr'], returns: 'i32' })
  setLimit?.(RLIMIT_CPU, BigUint64Array.of(BigInt(seconds), BigInt(seconds)))
}
