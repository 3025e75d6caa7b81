// How does an own deployment behave, with its proxy and TLS, and does it count every redirect?
// npm run bench -- --url https://go.example --key hop_… [--token …] [--ca FILE] [--links 1000]
import { ADAPTERS, type Adapter, type CreatedLink } from '../lib/adapters.ts'
import {
  type ApiAnswer,
  type ApiCall,
  Deployment,
  type DeploymentOptions,
} from '../lib/deployment.ts'
import { measureVariants, type Plan, value } from '../lib/figures.ts'
import { forEach } from '../lib/hopcode-client.ts'
import { onInterrupt } from '../lib/leftovers.ts'
import {
  type ClosedLoad,
  generateLoad,
  type LoadResult,
  type OpenLoad,
  requireFaultless,
} from '../lib/load.ts'
import type { Target } from '../lib/request.ts'
import type { Figures, Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'

/** Hopcode states this limit where there is none. */
const UNLIMITED = 2_147_483_647
/** Part of the remaining budget that the loads of a run use. */
const BUDGET_PART = 0.9
/** Part of the kept connections' rate that the open loop has at most. */
const OPEN_PART = 0.6
/** Counts that do not change for so long will not come: hosts of a cluster need 5 s. */
const UNCHANGED_MS = 6000
const COUNTED_POLL_MS = 250

const METRICS: Metric[] = [
  { key: 'requestsPerSecond', label: 'requests/s', digits: 0, ratio: true },
  { key: 'p50', label: 'p50, ms', digits: 2, ratio: true },
  { key: 'p99', label: 'p99, ms', digits: 2, ratio: true },
  { key: 'max', label: 'the slowest, ms', digits: 1, ratio: false },
  {
    key: 'resumedPercent',
    label: 'connections with a resumed TLS session, %',
    digits: 0,
    ratio: false,
  },
  { key: 'requests', label: 'requests', digits: 0, ratio: false },
]

/** One kind of load. */
interface Part {
  name: string
  use?: ClosedLoad['use']
  resumes?: boolean
  isCold?: boolean
  isOpen?: boolean
}

export const url: Scenario = {
  name: 'url',
  question: 'How does this deployment answer, and does it count every redirect?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  if (!options.deployment) throw new Error('it needs --url')
  const deployment = await Deployment.open(options.deployment)
  const { tcp, tls } = deployment.roundTrips
  const handshake = Number.isNaN(tls) ? 'no TLS' : `TLS handshake ${tls.toFixed(2)} ms`
  say(`round trips: TCP ${tcp.toFixed(2)} ms, ${handshake}`)
  const links = new BenchLinks(deployment, options.deployment, say)
  using _ = onInterrupt(() => links.remove())
  try {
    await links.create()
    const limit = await links.compare()
    say(describeLimit(limit))
    const findings = await measure(links, options, limit, say)
    await links.requireCounted()
    findings.notes.push(`counted = followed: ${links.followedInAll} redirects.`)
    return findings
  } finally {
    await links.remove()
  }
}

interface RateLimit {
  perMinute: number
  remaining: number
}

function describeLimit({ perMinute, remaining }: RateLimit): string {
  if (Number.isNaN(perMinute)) return 'rate limit: the service states none'
  if (perMinute >= UNLIMITED) return 'rate limit: none'
  return (
    `rate limit: ${perMinute} requests a minute, ${remaining} left, which bound the load. ` +
    'ANONYMOUS_REDIRECTS_PER_MINUTE=0 switches it off during a bench.'
  )
}

async function measure(
  links: BenchLinks,
  options: LoadOptions,
  { perMinute, remaining }: RateLimit,
  say: Progress,
): Promise<Findings> {
  const isSecure = links.deployment.remote.tls !== undefined
  const each: Part = { name: 'one connection', use: 'visitor closes' }
  const parts: Part[] = [
    { name: 'kept' },
    each,
    ...(isSecure ? [{ ...each, name: 'one connection, resumed', resumes: true }] : []),
    { name: 'cold', isCold: true },
    { name: 'open loop', isOpen: true },
  ]
  const loads = parts.length * options.rounds
  const isLimited = perMinute < UNLIMITED
  const requestsMax = isLimited
    ? Math.floor((remaining * BUDGET_PART) / loads)
    : Number.MAX_SAFE_INTEGER
  const coldAtOnce = Math.floor(links.cold.length / options.rounds)
  if (Math.min(requestsMax, coldAtOnce) < 1) {
    throw new Error('the links or the rate limit are too few for these rounds: use fewer rounds')
  }
  let keptRate = options.rate
  const measurePart = async (part: Part): Promise<RoundResult> => {
    const result = await links.load(part, {
      ...options,
      requestsMax: part.isCold ? Math.min(coldAtOnce, requestsMax) : requestsMax,
      rate: Math.max(1, Math.min(options.rate, Math.floor(keptRate * OPEN_PART))),
    })
    if (part.name === 'kept') keptRate = result.answered / result.seconds
    return { figures: figuresOf(result) }
  }
  const plan: Plan<Part> = {
    variants: parts,
    measure: measurePart,
    baseline: 'kept',
    settings: {
      ...links.deployment.roundTrips,
      links: links.warm.length,
      isLimited: `${isLimited}`,
    },
    metrics: METRICS,
    figures: {
      'redirects/s, kept connections': value('kept', 'requestsPerSecond', ' /s'),
      'redirects/s, one connection each': value(each.name, 'requestsPerSecond', ' /s'),
      'p99 in the open loop': value('open loop', 'p99', ' ms', 2),
    },
    notes: [
      `kept: ${options.connections} connections; one connection: a new one for each request, ` +
        'from whose beginning it is timed.',
      'cold: each link for the first time. open loop: requests are due at a fixed rate.',
      'Every status and Location was compared.',
    ],
  }
  return await measureVariants(plan, options, say)
}

function figuresOf({ answered, seconds, latency, resumed }: LoadResult): Figures {
  return {
    requestsPerSecond: answered / seconds,
    p50: latency.p50 / 1000,
    p99: latency.p99 / 1000,
    max: latency.max / 1000,
    resumedPercent: (resumed / answered) * 100,
    requests: answered,
  }
}

interface BenchLink extends CreatedLink {
  url: string
  followed: number
}

interface PartLoad extends Pick<LoadOptions, 'connections' | 'seconds' | 'rate'> {
  requestsMax: number
}

/** The links of one run, with how often each was followed. */
class BenchLinks {
  readonly deployment: Deployment
  readonly tag = `bench-${crypto.randomUUID().slice(0, 8)}`
  readonly #options: DeploymentOptions
  readonly #adapter: Adapter
  readonly #say: Progress
  readonly #links: BenchLink[] = []
  readonly #creating = new Set<Promise<unknown>>()
  #status = 302
  #coldNext = 0
  #removed: Promise<void> | undefined

  constructor(deployment: Deployment, options: DeploymentOptions, say: Progress) {
    this.deployment = deployment
    this.#options = options
    this.#adapter = ADAPTERS[options.service] as Adapter
    this.#say = say
  }

  /** Half of the links are for `cold` only. */
  get warm(): BenchLink[] {
    return this.#links.slice(0, Math.ceil(this.#links.length / 2))
  }

  get cold(): BenchLink[] {
    return this.#links.slice(Math.ceil(this.#links.length / 2))
  }

  get followedInAll(): number {
    return this.#links.reduce((sum, { followed }) => sum + followed, 0)
  }

  async create(): Promise<void> {
    this.#say(`creating ${this.#options.links} links with the tag ${this.tag}`)
    const numbers = Array.from({ length: this.#options.links }, (_, n) => n)
    await forEach(numbers, async (n) => {
      if (this.#removed) throw new Error('interrupted')
      const created = this.#createOne(`https://example.com/${this.tag}/${n}?from=bench`)
      this.#creating.add(created)
      await created.finally(() => this.#creating.delete(created))
    })
  }

  async #createOne(url: string): Promise<void> {
    const answer = await this.#call(this.#adapter.create(url, this.tag, this.#options.key))
    this.#links.push({ ...this.#adapter.created(answer), url, followed: 0 })
  }

  /** Follows each of `warm` once. Throws if one does not lead to its URL. Returns the limit. */
  async compare(): Promise<RateLimit> {
    this.#say('comparing the Location of each')
    const limit: RateLimit = { perMinute: Number.NaN, remaining: Number.NaN }
    await forEach(this.warm, async (link) => {
      const request = { path: link.path, headers: VISITOR }
      const { status, headers } = await this.deployment.call(request)
      const location = headers.get('location')
      if (status < 300 || status > 399 || location !== link.url) {
        throw new Error(`${link.path} answered ${status} ${location}, not ${link.url}`)
      }
      link.followed += 1
      this.#status = status
      limit.perMinute = Number(headers.get('x-ratelimit-limit') ?? Number.NaN)
      const remaining = Number(headers.get('x-ratelimit-remaining') ?? Number.NaN)
      if (!(limit.remaining < remaining)) limit.remaining = remaining
    })
    return limit
  }

  /** Sends one load, and adds what was followed. Throws if a response is wrong or missing. */
  async load(part: Part, { connections, seconds, rate, requestsMax }: PartLoad) {
    const links = part.isCold ? this.cold.slice(this.#coldNext).slice(0, requestsMax) : this.warm
    if (part.isCold) this.#coldNext += links.length
    const { remote, port } = this.deployment
    const tls = remote.tls && { ...remote.tls, resumes: part.resumes ?? false }
    const targets = links.map(
      ({ path, url }): Target => ({
        path,
        headers: VISITOR,
        status: this.#status,
        location: url,
      }),
    )
    const server = { port, targets, remote: { ...remote, ...(tls && { tls }) } }
    const base = { connections: Math.min(connections, requestsMax), seconds }
    const load: ClosedLoad | OpenLoad = part.isOpen
      ? { ...base, ratePerSecond: rate, seconds: Math.min(seconds, requestsMax / rate) }
      : { ...base, requestsMax, ...(part.use && { use: part.use }) }
    const result = await generateLoad(server, load)
    for (const [n, count] of result.rightByTarget.entries()) {
      const link = links[n]
      if (link) link.followed += count
    }
    requireFaultless(result, `${part.name}${result.firstFault?.includes(': 429 ') ? LIMITED : ''}`)
    return result
  }

  /** Throws unless each link counts exactly the redirects that were received. */
  async requireCounted(): Promise<void> {
    this.#say(`comparing the counts with ${this.followedInAll} redirects`)
    let changedAt = performance.now()
    let latest = Number.NaN
    let left = this.#links
    for (;;) {
      const counts = await forEach(left, async (link) => ({ link, count: await this.#count(link) }))
      const wrong = counts.filter(({ link, count }) => link.followed !== count)
      const [first] = wrong
      if (!first) return
      const missing = wrong.reduce((sum, { link, count }) => sum + link.followed - count, 0)
      if (missing !== latest) changedAt = performance.now()
      latest = missing
      if (performance.now() - changedAt > UNCHANGED_MS) {
        const { link, count } = first
        throw new Error(
          `${wrong.length} links do not count what was followed: ${link.path} counts ${count} of ` +
            `${link.followed} redirects`,
        )
      }
      left = wrong.map(({ link }) => link)
      await Bun.sleep(COUNTED_POLL_MS)
    }
  }

  async #count(link: BenchLink): Promise<number> {
    return this.#adapter.counted(await this.#call(this.#adapter.count(link, this.#options.key)))
  }

  /** Deletes all links of this run, also those that are being created. Runs once. */
  remove(): Promise<void> {
    this.#removed ??= this.#removeAll()
    return this.#removed
  }

  async #removeAll(): Promise<void> {
    await Promise.allSettled([...this.#creating])
    this.#say(`deleting ${this.#links.length} links`)
    const left: string[] = []
    await forEach(this.#links, async (link) => {
      await this.#call(this.#adapter.remove(link, this.#options.key)).catch(() => {
        left.push(link.path)
      })
    })
    if (left.length === 0) return
    throw new Error(`${left.length} links with the tag ${this.tag} could not be deleted`)
  }

  async #call(call: ApiCall): Promise<ApiAnswer> {
    const headers = this.#adapter.headers(this.#options.key)
    const answer = await this.deployment.call({ ...call, headers: { ...headers, ...call.headers } })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw new Error(`${call.path} answered ${answer.status}: ${answer.text.slice(0, 300)}`)
  }
}

/** Some services count no visitors without a browser. */
const VISITOR = {
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0',
}

const LIMITED = ', refused by a rate limit of the service or of its proxy'
