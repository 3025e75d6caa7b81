import type { TestCluster, TestHost } from '../../support/cluster.ts'
import type { SeededRandom } from './seeded-random.ts'

/** Injects one or two faults into a cluster under load. */

/** Of the link between a host and PostgreSQL. */
const LINK_FAULTS = ['silence', 'packets arrive 8 s late', '1 Mbit/s', '300 ms'] as const

export const FAULTS = [
  'host killed',
  'PostgreSQL killed',
  'connections cut',
  'host cut off',
  'answers of PostgreSQL lost',
  'host paused',
  'PostgreSQL paused',
  ...LINK_FAULTS,
] as const

/** `CLUSTER_FAULT` names the only fault, for a test of the test. */
const CHOSEN = FAULTS.filter((fault) => fault === (process.env.CLUSTER_FAULT ?? fault))
if (CHOSEN.length === 0) throw new Error(`CLUSTER_FAULT is none of: ${FAULTS.join(', ')}`)

type LinkFault = (typeof LINK_FAULTS)[number]
type Fault = (typeof FAULTS)[number]

const isLinkFault = (fault: Fault): fault is LinkFault =>
  (LINK_FAULTS as readonly Fault[]).includes(fault)

/** Longer than the lease of a host, at times. */
const FAULT_MS_MAX = 2600
const CUTS_MAX = 6
const LATE_MS = 8000

export class ClusterFaults {
  readonly injected: Fault[] = []
  readonly #cluster: TestCluster
  readonly #random: SeededRandom
  readonly #round: number
  readonly #undo: (() => void | Promise<void>)[] = []

  constructor(cluster: TestCluster, { random, round }: { random: SeededRandom; round: number }) {
    this.#cluster = cluster
    this.#random = random
    this.#round = round
  }

  /** One fault after the other in successive rounds, and sometimes a second one at random. */
  async inject(): Promise<void> {
    const numbers = [this.#round]
    if (this.#random.chance(0.3)) numbers.push(this.#random.below(CHOSEN.length))
    for (const number of numbers) {
      const fault = CHOSEN[number % CHOSEN.length] as Fault
      if (this.injected.includes(fault)) continue
      this.injected.push(fault)
      await this.#inject(fault)
    }
  }

  /** Ends every fault. Killed processes run again when this resolves. */
  async heal(): Promise<void> {
    // The last one first; starts of hosts, which need PostgreSQL, come last.
    for (const undo of this.#undo.toReversed()) await undo()
  }

  async #inject(fault: Fault): Promise<void> {
    const { hosts, postgres } = this.#cluster
    const random = this.#random
    const host = this.#cluster.host(random.below(hosts.length))
    const forMs = FAULT_MS_MAX * random.next() ** 2
    if (fault === 'host killed') {
      await host.kill()
      this.#undo.unshift(() => host.start())
    } else if (fault === 'PostgreSQL killed') {
      await postgres.kill()
      this.#undo.push(() => postgres.restart())
    } else if (fault === 'connections cut') await this.#cut(host)
    else if (fault === 'host cut off') {
      host.proxy.disconnect()
      this.#undo.push(() => host.proxy.restore())
    } else if (fault === 'answers of PostgreSQL lost') {
      // What was on its way is done, but its host does not know.
      host.proxy.stall('down')
      this.#undo.push(() => {
        host.proxy.cut()
        host.proxy.restore()
      })
    } else if (fault === 'host paused') this.#pause(host)
    else if (isLinkFault(fault)) return await this.#slowDown(host, fault)
    else {
      postgres.pause()
      this.#undo.push(() => postgres.resume())
    }
    await Bun.sleep(forMs)
  }

  /** Several times, each in the middle of something else. */
  async #cut(host: TestHost): Promise<void> {
    for (let rest = 1 + this.#random.below(CUTS_MAX); rest > 0; rest--) {
      const isAll = this.#random.chance(0.3)
      for (const { proxy } of isAll ? this.#cluster.hosts : [host]) proxy.cut()
      await Bun.sleep(this.#random.below(120))
    }
  }

  async #slowDown({ proxy }: TestHost, fault: LinkFault): Promise<void> {
    if (fault === 'silence') proxy.stall()
    else if (fault === 'packets arrive 8 s late') proxy.delay(LATE_MS, 'up')
    else if (fault === '1 Mbit/s') proxy.limit(1_000_000)
    else proxy.delay(150)
    this.#undo.push(() => {
      proxy.restore()
      return proxy.delivered()
    })
    await Bun.sleep(FAULT_MS_MAX)
  }

  #pause(host: TestHost): void {
    // It may be killed already.
    if (host.url === undefined) return
    host.pause()
    this.#undo.push(() => host.resume())
  }
}
