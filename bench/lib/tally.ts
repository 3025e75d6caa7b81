import { Histogram, type HistogramJson } from './histogram.ts'
import type { Target } from './raw-client.ts'
import type { ResponseScanner } from './response-scanner.ts'

/** The counts of a generator. Every request is answered, lost, unanswered or unsent. */
export interface LoadResult {
  sent: number
  answered: number
  byStatus: Record<string, number>
  /** Correct responses of each target, in the order of the targets. */
  rightByTarget: number[]
  /** Responses whose status, Location or length differs from that of their target. */
  wrong: number
  firstWrong?: string
  /** Requests whose connection broke, and why the first one did. */
  lost: number
  firstLost?: string
  /** Requests still open at the end. */
  unanswered: number
  /** Requests of an open loop that were due and never sent. */
  unsent: number
  /** From the first send to the last answer. */
  seconds: number
  /**
   * Nanoseconds. Wrong answers are in it; lost requests are not; unanswered and unsent ones are,
   * with their age at the end.
   */
  latency: HistogramJson
}

/** Checks and counts the responses of one generator. */
export class LoadTally {
  readonly latency = new Histogram()
  readonly #targets: readonly Target[]
  readonly #right: Float64Array
  readonly #byStatus = new Map<number, number>()
  #sent = 0
  #answered = 0
  #wrong = 0
  #firstWrong: string | undefined
  #lost = 0
  #firstLost: string | undefined

  constructor(targets: readonly Target[]) {
    this.#targets = targets
    this.#right = new Float64Array(targets.length)
  }

  /** Requests sent that are neither answered nor lost. */
  get open(): number {
    return this.#sent - this.#answered - this.#lost
  }

  sent(): void {
    this.#sent += 1
  }

  answered(targetIndex: number, scanner: ResponseScanner, latencyNs: number): void {
    this.#answered += 1
    this.latency.record(latencyNs)
    this.#byStatus.set(scanner.status, (this.#byStatus.get(scanner.status) ?? 0) + 1)
    const target = this.#targets[targetIndex]
    const location = scanner.header(0)
    const right =
      scanner.status === target?.status &&
      (target.location === undefined || target.location === location) &&
      (target.bodyBytes === undefined || target.bodyBytes === scanner.bodyBytes)
    if (right) {
      this.#right[targetIndex] = (this.#right[targetIndex] ?? 0) + 1
    } else {
      this.#wrong += 1
      const length = target?.bodyBytes === undefined ? '' : `, ${scanner.bodyBytes} bytes`
      const got = `${scanner.status} ${location ?? 'without Location'}${length}`
      this.#firstWrong ??= `${target?.path}: ${got}`
    }
  }

  lost(reason: string): void {
    this.#lost += 1
    this.#firstLost ??= reason
  }

  result(seconds: number): LoadResult {
    return {
      sent: this.#sent,
      answered: this.#answered,
      byStatus: Object.fromEntries(this.#byStatus),
      rightByTarget: [...this.#right],
      wrong: this.#wrong,
      ...(this.#firstWrong !== undefined && { firstWrong: this.#firstWrong }),
      lost: this.#lost,
      ...(this.#firstLost !== undefined && { firstLost: this.#firstLost }),
      unanswered: this.open,
      unsent: 0,
      seconds,
      latency: this.latency.toJSON(),
    }
  }
}

/** Throws Error unless every request got the response that its target expects. */
export function requireFaultless(result: LoadResult, what: string): void {
  const { wrong, lost, unanswered, unsent } = result
  if (wrong + lost + unanswered + unsent === 0) return
  const first = result.firstWrong ?? result.firstLost ?? 'no answer in time'
  const counts = `${wrong} wrong, ${lost} lost, ${unanswered} unanswered and ${unsent} unsent`
  throw new Error(`${what}: ${counts} of ${result.sent + unsent} requests (first: ${first})`)
}
