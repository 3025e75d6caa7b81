import type { Database } from 'bun:sqlite'
import { versionOf } from '../db/migrate.ts'
import type { Outcome } from '../lib/thread.ts'
import type { LoggedCall } from './entries.ts'
import { DIGESTS_KEPT, type Digest, type LogState, type OtherHost, type Split } from './log.ts'
import type { HashedRows, HashRows } from './rows.ts'

/** The comparison of the rows of all hosts. */

/** A part takes the writer thread of every host some 10 ms. */
const PART = { rowsMax: 5000, bytesMax: 512 * 1024 }
/** From the end of one comparison of all rows to the next one. */
const PAUSE_MS = 5 * 60_000

export const DAMAGED =
  'the data of this host differ from those of most hosts. Make a new data folder with ' +
  '"hopcode cluster join".'

/** So say all hosts. */
export const UNDECIDED =
  'the hosts have different data, and no majority agrees: see docs/operations/cluster.md'

interface ComparisonOptions {
  host: string
  db: Database
  /** Whether this host appends parts. It hashes those of others in any case. */
  compares: boolean
}

/**
 * The parts that are compared, one after the other. A part is an entry of the log, so all hosts
 * hash their rows as of the same change.
 */
export class Comparison {
  readonly #host: string
  readonly #version: number
  readonly #compares: boolean
  #next: HashRows['from'] = null
  #dueAt = 0
  /** A start compares all rows: they may have been changed by hand before it. */
  #hasBegun = false
  #isAppending = false
  /** Digests of this host that are not reported yet. */
  digests: Digest[] = []
  /** Why the rows of this host may be wrong, until enough other hosts have decided. */
  doubt: string | undefined
  /** Comparisons of all rows that have ended since the start. */
  completed = 0

  constructor({ host, db, compares }: ComparisonOptions) {
    this.#host = host
    this.#compares = compares
    this.#version = versionOf(db)
  }

  /** Appends the next part if it is due and this host is the one to do it. */
  async proceed(
    others: readonly OtherHost[],
    append: (call: LoggedCall) => Promise<unknown>,
  ): Promise<void> {
    if (!this.#compares || others.length === 0 || this.#isAppending) return
    const isFirst = others.every(({ id, isLive }) => !isLive || id > this.#host)
    if (this.#hasBegun && (!isFirst || performance.now() < this.#dueAt)) return
    const from = this.#hasBegun ? this.#next : null
    const args: HashRows = { version: this.#version, from, ...PART }
    this.#isAppending = true
    // A later call tries again. Hosts of different releases are not compared.
    await append({ name: 'hashRows', args }).catch(() => {})
    this.#isAppending = false
  }

  /** Notes an applied entry of any host. Returns whether it is a part of a comparison. */
  noteEntry(seq: number, [call]: readonly LoggedCall[], [outcome]: readonly Outcome[]): boolean {
    if (call?.name !== 'hashRows') return false
    if ((call.args as HashRows).from === null) this.#hasBegun = true
    const hashed = outcome && 'value' in outcome ? (outcome.value as HashedRows | undefined) : null
    if (hashed) {
      this.digests = [...this.digests.slice(1 - DIGESTS_KEPT), { seq, digest: hashed.digest }]
    }
    this.#next = hashed?.next ?? null
    if (this.#next === null) this.#dueAt = performance.now() + PAUSE_MS
    if (hashed?.next === null) this.completed++
    return true
  }

  judge({ splits, hosts }: Pick<LogState, 'splits' | 'hosts'>): Verdict {
    const verdict = verdictOn(splits, this.#host, hosts)
    this.doubt = verdict === 'undecided' ? UNDECIDED : undefined
    return verdict
  }

  forget(reported: readonly Digest[]): void {
    this.digests = this.digests.filter((one) => !reported.includes(one))
  }
}

type Verdict = 'right' | 'wrong' | 'undecided'

/**
 * Whether the rows of this host are right: those of the majority are. A live host that has not
 * applied the entry yet may decide; hosts that are known to be wrong do not count. `splits`: the
 * newest first.
 */
export function verdictOn(
  splits: readonly Split[],
  own: string,
  others: readonly OtherHost[],
): Verdict {
  const split = splits.find(({ digests }) => digests[own] !== undefined)
  if (!split) return 'right'
  const isDamaged = (id: string) => others.some((one) => one.id === id && one.problem === DAMAGED)
  const digests = Object.entries(split.digests).flatMap(([id, one]) => (isDamaged(id) ? [] : one))
  const isMissing = ({ id, isLive, applied }: OtherHost) =>
    isLive && applied < split.seq && split.digests[id] === undefined
  const missing = others.filter(isMissing).length
  const isMajority = (digest: string | undefined) =>
    digests.filter((one) => one === digest).length > (digests.length + missing) / 2
  if (isMajority(split.digests[own])) return 'right'
  if (digests.some(isMajority)) return 'wrong'
  return missing > 0 ? 'right' : 'undecided'
}
