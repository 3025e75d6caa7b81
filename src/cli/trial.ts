import { deserialize, serialize } from 'bun:jsc'
import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { openTrials } from '../qr/trial.ts'
import type { TrialCall } from '../qr/trials.ts'

/** Runs one trial for `QrTrials`: a call on standard input, its result on standard output. */
export async function runTrial(): Promise<void> {
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
