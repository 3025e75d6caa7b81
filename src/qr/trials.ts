import { deserialize, serialize } from 'bun:jsc'
import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { MINUTE, type MonotonicClock, monotonicClock, SECOND } from '../lib/clock.ts'
import type { LogoTrial, OptionsTrial, Trials } from './trial.ts'

/** The argument with which this program runs one trial. Not a command for users. */
export const TRIAL_ARGUMENT = 'internal-qr-trial'

/** Trials that wait or run, one for each account: each waits for less than 30 seconds of CPU. */
const TRIALS_MAX = 5
/** Wall-clock limit. The process also limits its CPU time itself: see `runTrial`. */
const TIMEOUT_MS = 15 * SECOND
/** Time after a killed trial in which its account starts no other, so that other accounts can. */
const COOL_DOWN_MS = MINUTE
const RESULT_BYTES_MAX = 1024 * 1024

export type TrialCall = {
  [Name in keyof Trials]: { name: Name; args: Parameters<Trials[Name]>[0] }
}[keyof Trials]

const overloaded = (retryMs: number): AppError =>
  new AppError('overloaded', '', { headers: { 'retry-after': `${Math.ceil(retryMs / SECOND)}` } })

interface QrTrialsOptions {
  /** Starts this program; `TRIAL_ARGUMENT` follows. */
  command: readonly string[]
  /** The longest short URL: the smaller the modules, the more of them a logo hides. */
  text: string
  timeoutMs?: number
  monotonic?: MonotonicClock
}

/** Tests logos and options in a process of their own, one at a time. A hanging one is killed. */
export class QrTrials {
  readonly #command: readonly string[]
  readonly #text: string
  readonly #timeoutMs: number
  readonly #monotonic: MonotonicClock
  readonly #accounts = new Set<AccountId>()
  /** When the cool-down of an account ends. */
  readonly #coolDowns = new Map<AccountId, number>()
  #process: Bun.Subprocess | undefined
  #isClosed = false
  /** Settles with the latest trial and never rejects. */
  #latest: Promise<unknown> = Promise.resolve()

  constructor(options: QrTrialsOptions) {
    const { command, text, timeoutMs = TIMEOUT_MS, monotonic = monotonicClock } = options
    this.#command = command
    this.#text = text
    this.#timeoutMs = timeoutMs
    this.#monotonic = monotonic
  }

  /**
   * `bytes`: a PNG or SVG file. Throws `overloaded` while too many trials wait, and for an account
   * in its cool-down.
   */
  async tryLogo(accountId: AccountId, bytes: Uint8Array): Promise<LogoTrial> {
    const tried = await this.#queue(accountId, {
      name: 'tryLogo',
      args: { bytes, text: this.#text },
    })
    if (tried === undefined) {
      return {
        problem: 'The logo takes too long to draw. Use simpler shapes, and try again in a minute.',
      }
    }
    return tried as LogoTrial
  }

  /** Whether two decoders read codes with these options. Throws like `tryLogo`. */
  async isReadable(accountId: AccountId, trial: Omit<OptionsTrial, 'text'>): Promise<boolean> {
    const args = { ...trial, text: this.#text }
    return (await this.#queue(accountId, { name: 'isReadable', args })) === true
  }

  /** Kills a running trial and refuses new ones. */
  close(): void {
    this.#isClosed = true
    this.#process?.kill('SIGKILL')
  }

  async #queue(accountId: AccountId, call: TrialCall): Promise<unknown> {
    const coolDownMs = this.#coolDownMs(accountId)
    if (coolDownMs > 0) throw overloaded(coolDownMs)
    if (this.#accounts.has(accountId) || this.#accounts.size >= TRIALS_MAX) {
      throw overloaded(5 * SECOND)
    }
    this.#accounts.add(accountId)
    const trial = this.#latest.then(() => this.#run(call))
    this.#latest = trial.catch(() => {})
    try {
      const result = await trial
      if (result === undefined) this.#coolDowns.set(accountId, this.#monotonic() + COOL_DOWN_MS)
      return result
    } finally {
      this.#accounts.delete(accountId)
    }
  }

  #coolDownMs(accountId: AccountId): number {
    const now = this.#monotonic()
    for (const [id, end] of this.#coolDowns) if (end <= now) this.#coolDowns.delete(id)
    return (this.#coolDowns.get(accountId) ?? now) - now
  }

  /** Undefined if the process was killed: after a time limit, or because memory is short. */
  async #run(call: TrialCall): Promise<unknown> {
    if (this.#isClosed) throw new AppError('stopping')
    const child = Bun.spawn({
      cmd: [...this.#command, TRIAL_ARGUMENT],
      stdin: new Uint8Array(serialize(call)),
      stdout: 'pipe',
      stderr: 'ignore',
      // Settings may contain secrets.
      env: {},
      timeout: this.#timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: RESULT_BYTES_MAX,
    })
    this.#process = child
    const [output] = await Promise.all([new Response(child.stdout).arrayBuffer(), child.exited])
    if (child.signalCode !== null) return undefined
    if (child.exitCode !== 0) throw new Error(`a QR trial ended with ${child.exitCode}`)
    return deserialize(output)
  }
}
