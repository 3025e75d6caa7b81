import { decodeCalls, type LoggedCall } from '../../../src/cluster/entries.ts'
import { TestCluster } from '../../support/cluster.ts'
import { ClusterFaults, FAULTS } from './cluster-faults.ts'
import { ClusterLoad } from './cluster-load.ts'
import { audit } from './kill-audit.ts'
import { Known } from './kill-known.ts'
import { SeededRandom } from './seeded-random.ts'

/**
 * Calls that a host may append again with the same arguments. A batch of visits has no effect a
 * second time. Every other call of the load has something random in it.
 */
const REPEATABLE = new Set(['keys.noteUses', 'hashRows', 'visits.add'])

/** Rounds after which there are new data folders: each fault once. */
const PER_CLUSTER = FAULTS.length

interface RoundOptions {
  /** A build of the program. */
  program: string
  rounds: number
  seed: number
  hosts?: number
}

export interface RoundResult {
  /** Empty if nothing was lost, came back, was counted twice, or differs between hosts. */
  problems: string[]
  rounds: number
  /** Requests answered under load. */
  answers: number
  /** Changes whose outcome no answer told. */
  unknown: number
  redirects: number
  links: number
  entries: number
  /** How often each fault was injected. */
  faults: Record<string, number>
  /** The longest time from the end of all faults until every host was ready. */
  recoveryMsMax: number
}

/** One cluster after the other, each with several rounds of faults, until something is wrong. */
export async function runClusterRounds(options: RoundOptions): Promise<RoundResult> {
  const { rounds } = options
  const result: RoundResult = {
    problems: [],
    rounds: 0,
    answers: 0,
    unknown: 0,
    redirects: 0,
    links: 0,
    entries: 0,
    faults: {},
    recoveryMsMax: 0,
  }
  while (result.rounds < rounds && result.problems.length === 0) {
    const count = Math.min(PER_CLUSTER, rounds - result.rounds)
    await using victim = await Victim.create(options, result)
    for (let i = 0; i < count && result.problems.length === 0; i++) {
      await victim.round(result.rounds)
      result.rounds++
    }
    await victim.finish()
  }
  return result
}

const FLUSH_MS = [1, 5, 25, 250, 5000]

/** A cluster, and what clients know of its links. */
class Victim implements AsyncDisposable {
  readonly #cluster: TestCluster
  readonly #seed: number
  readonly #result: RoundResult
  readonly #known = new Known()

  private constructor(cluster: TestCluster, seed: number, result: RoundResult) {
    this.#cluster = cluster
    this.#seed = seed
    this.#result = result
  }

  static async create(options: RoundOptions, result: RoundResult): Promise<Victim> {
    const { program, seed, hosts } = options
    const random = new SeededRandom(seed ^ result.rounds)
    const env = () => ({ HIT_FLUSH_MS: String(FLUSH_MS[random.below(FLUSH_MS.length)]) })
    const cluster = await TestCluster.start({ program, env, ...(hosts && { hosts }) })
    return new Victim(cluster, seed, result)
  }

  /** Load, faults, rest, comparison with what clients were told. */
  async round(round: number): Promise<void> {
    const random = new SeededRandom(this.#seed ^ (round * 0x9e3779b1))
    const { hosts, key } = this.#cluster
    const load = new ClusterLoad({ hosts, key, known: this.#known, random, round })
    const faults = new ClusterFaults(this.#cluster, { random, round })
    await Bun.sleep(50 + random.below(200))
    await faults.inject()
    await faults.heal()
    const before = performance.now()
    await this.#cluster.ready()
    const recoveryMs = performance.now() - before
    await Bun.sleep(random.below(200))
    await load.stop()
    await this.#cluster.rest()
    this.#note(round, [...load.problems, ...(await this.#compare(random))])
    const result = this.#result
    result.answers += load.answers
    result.unknown += load.unknown
    result.recoveryMsMax = Math.max(result.recoveryMsMax, Math.round(recoveryMs))
    for (const name of faults.injected) result.faults[name] = (result.faults[name] ?? 0) + 1
  }

  async finish(): Promise<void> {
    const { redirects, links } = this.#known
    this.#result.redirects += redirects.least
    this.#result.links += links.size
    this.#result.entries += await this.#entries()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]()
  }

  /** What is wrong with the hosts, which are at rest. */
  async #compare(random: SeededRandom): Promise<string[]> {
    const { hosts, key } = this.#cluster
    const difference = await this.#cluster.difference()
    if (difference) return [`the hosts differ: ${difference}`]
    // They hold the same, so each answer may come from another one.
    const anyHost = {
      fetch: (path: string, init?: RequestInit) =>
        this.#cluster.host(random.below(hosts.length)).fetch(path, init),
    }
    const problems = await audit(anyHost, key, this.#known)
    const repeated = await this.#repeatedEntries()
    return [...problems, ...repeated.map((calls) => `applied twice: ${calls.slice(0, 200)}`)]
  }

  /** Entries that are in the log twice, without those of `REPEATABLE` calls alone. */
  async #repeatedEntries(): Promise<string[]> {
    const rows = await this.#cluster.postgres.run(
      (sql) => sql`SELECT calls FROM hopcode.log GROUP BY host, calls HAVING count(*) > 1`,
      this.#cluster.database,
    )
    return rows
      .map(({ calls }: { calls: Uint8Array }) => decodeCalls(calls))
      .filter((calls: LoggedCall[]) => calls.some(({ name }) => !REPEATABLE.has(name)))
      .map((calls: LoggedCall[]) => JSON.stringify(calls))
  }

  async #entries(): Promise<number> {
    const [row] = await this.#cluster.postgres.run(
      (sql) => sql`SELECT seq FROM hopcode.cluster`,
      this.#cluster.database,
    )
    return Number(row.seq)
  }

  #note(round: number, problems: readonly string[]): void {
    const shown = problems.slice(0, 20).map((problem) => `round ${round}: ${problem}`)
    this.#result.problems.push(...shown)
  }
}
