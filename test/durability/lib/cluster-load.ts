import type { TestHost } from '../../support/cluster.ts'
import { KeepAlive, type KeepAliveAnswer } from './keep-alive.ts'
import { DELETED, isActive, type Known, type KnownLink, RESERVED } from './kill-known.ts'
import { SeededRandom } from './seeded-random.ts'

/** Clients of a cluster's hosts while hosts, PostgreSQL and their connections fail. */

const WRITERS = 12
const FOLLOWERS = 4
/** Between two redirects of a client: changes need the processor as well. */
const FOLLOW_PAUSE_MS = 4
const SHARED_URLS = 8
const WANTED_CODES = 3
const BULK_MAX = 60
/** A client waits as long before it connects again. */
const RECONNECT_MS = 10

interface LoadOptions {
  hosts: readonly TestHost[]
  key: string
  known: Known
  random: SeededRandom
  round: number
}

interface Created {
  code: string
  passcode: string | null
  reused: boolean
}

type Changed<View> = View & { status: number }

export class ClusterLoad {
  /** What an answer must not say. */
  readonly problems: string[] = []
  answers = 0
  /** Changes whose outcome their client does not know. */
  unknown = 0
  #isStopped = false
  readonly #options: LoadOptions
  /** All hosts had these before the round. */
  readonly #followable: readonly KnownLink[]
  /** The host that answered the last change of a link in this round. */
  readonly #homes = new Map<KnownLink, TestHost>()
  readonly #unanswered = new Set<KnownLink>()
  readonly #clients: Promise<void>[]

  constructor(options: LoadOptions) {
    this.#options = options
    const { known, random } = options
    this.#followable = known.followable()
    const changeable = known.changeable()
    const fork = () => new SeededRandom(random.below(2 ** 32))
    this.#clients = [
      ...Array.from({ length: WRITERS }, (_, i) => {
        const own = changeable.filter((_, link) => link % WRITERS === i)
        return this.#write(new Client(options, i), fork(), own)
      }),
      ...Array.from({ length: FOLLOWERS }, (_, i) => this.#follow(new Client(options, i), fork())),
      this.#read(new Client(options, 0), fork()),
    ]
  }

  /** Every client ends after the answer that it waits for: hosts that are paused must go on. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }

  get #goesOn(): boolean {
    return !this.#isStopped && this.problems.length === 0
  }

  async #ask(
    client: Client,
    method: string,
    path: string,
    body?: object,
  ): Promise<KeepAliveAnswer | undefined> {
    const answer = await client.ask(method, path, body)
    if (answer) this.answers++
    return answer
  }

  #wrong(what: string, { status, body }: KeepAliveAnswer): void {
    this.problems.push(`${what}: ${status} ${body.slice(0, 200)}`)
  }

  async #read(client: Client, random: SeededRandom): Promise<void> {
    while (this.#goesOn) {
      client.choose(random)
      const link = this.#followable[random.below(this.#followable.length)]
      const path = link && random.chance(0.8) ? `/api/lookup/${link.code}` : '/api/list?limit=20'
      const answer = await this.#ask(client, 'GET', path)
      if (answer && answer.status !== 200) return this.#wrong(path, answer)
      const { hit_count } = answer ? JSON.parse(answer.body) : {}
      if (link && hit_count > link.hits.most)
        this.#wrong(`${path} has too many hits`, answer as never)
    }
    client.close()
  }

  async #follow(client: Client, random: SeededRandom): Promise<void> {
    while (this.#goesOn) {
      client.choose(random)
      const link = this.#followable[random.below(this.#followable.length)]
      if (link) await this.#followOnce(client, link, false)
      await Bun.sleep(random.below(FOLLOW_PAUSE_MS))
    }
    client.close()
  }

  /** `mayBeLate`: the host may not have the last change of the link. */
  async #followOnce(client: Client, link: KnownLink, mayBeLate: boolean): Promise<void> {
    const { redirects } = this.#options.known
    const { hits } = link
    link.touched = true
    hits.asked()
    redirects.asked()
    const answer = await this.#ask(client, 'GET', `/${link.code}`)
    if (!answer) return
    if (answer.status === 302) {
      hits.happened()
      redirects.happened()
    } else if (answer.status === 404 && mayBeLate) {
      hits.refused()
      redirects.refused()
    } else this.#wrong(`GET /${link.code}, which is ${link.states}`, answer)
  }

  async #write(client: Client, random: SeededRandom, own: KnownLink[]): Promise<void> {
    const any = () => own[random.below(own.length)]
    const choices = [
      [0.25, () => this.#shortenNew(client, own, random.chance(0.5))],
      [0.35, () => this.#shortenShared(client, random)],
      [0.42, () => this.#reserve(client, random, own)],
      [0.75, () => this.#update(client, any())],
      [0.85, () => this.#delete(client, any())],
      [0.95, () => this.#recycle(client, random)],
      [1, () => this.#bulk(client, random)],
    ] as const
    while (this.#goesOn) {
      if (random.chance(0.3)) client.choose(random)
      const drawn = random.next()
      const [, act] = choices.find(([end]) => drawn < end) ?? choices[0]
      await act()
    }
    client.close()
  }

  /** Undefined when the outcome is unknown, or wrong, which is a problem. */
  async #change<View>(
    client: Client,
    path: string,
    body: object,
    statuses: readonly number[],
  ): Promise<Changed<View> | undefined> {
    const answer = await this.#ask(client, 'POST', path, body)
    if (!answer || answer.status === 500) {
      this.unknown++
      client.moveOn()
      return undefined
    }
    if (!statuses.includes(answer.status)) {
      this.#wrong(`${path} ${JSON.stringify(body).slice(0, 200)}`, answer)
      return undefined
    }
    return Object.assign(JSON.parse(answer.body), { status: answer.status })
  }

  async #shortenNew(client: Client, own: KnownLink[], kept: boolean): Promise<void> {
    const link = await this.#shorten(client, this.#newUrl('s'))
    if (!link) return
    link.kept = kept
    if (!kept) own.push(link)
  }

  #newUrl(kind: string): string {
    return `https://example.com/${kind}/${this.#options.known.next()}`
  }

  async #shorten(client: Client, url: string): Promise<KnownLink | undefined> {
    const { known } = this.#options
    const created = await this.#change<Created>(client, '/api/shorten', { url }, [201])
    if (!created) {
      known.unanswered.push([url])
      return undefined
    }
    const link = known.add(created.code, { states: [url], passcode: created.passcode ?? '' })
    this.#homes.set(link, client.host)
    return link
  }

  /** Clients of all hosts shorten the same URLs: they must get one code. */
  async #shortenShared(client: Client, random: SeededRandom): Promise<void> {
    const { known, round } = this.#options
    // Half of them are new in this round, half are the first ones.
    const group = random.chance(0.5) ? round : 0
    const url = `https://example.com/s/shared/${group}/${random.below(SHARED_URLS)}`
    const before = known.sharedCodes.get(url)
    const created = await this.#change<Created>(client, '/api/shorten', { url }, [200, 201])
    if (!created) {
      if (before === undefined) known.unanswered.push([url])
      return
    }
    const first = known.sharedCodes.get(url)
    if (first !== undefined && first !== created.code) {
      this.problems.push(`${url} is ${first}, and ${created.code} too`)
    }
    if (before !== undefined && !created.reused) this.problems.push(`${url} is not reused`)
    known.sharedCodes.set(url, created.code)
    if (first === undefined) known.add(created.code, { states: [url], kept: true })
  }

  async #reserve(client: Client, random: SeededRandom, own: KnownLink[]): Promise<void> {
    const { known, round } = this.#options
    if (random.chance(0.5)) {
      const link = await this.#reserveOwn(client, `OWN${1000 + known.next()}`)
      if (link) own.push(link)
      return
    }
    // Clients of all hosts want these.
    const code = `WANTED${round}X${random.below(WANTED_CODES)}`
    const link = known.links.get(code) ?? known.add(code, { states: [DELETED] })
    if (link.states[0] === DELETED) link.states = [DELETED, RESERVED]
    link.touched = true
    const body = { code }
    const view = await this.#change<{ passcode?: string }>(client, '/api/reserve', body, [201, 409])
    if (!view) return
    if (view.status === 201) {
      if (link.passcode !== undefined) this.problems.push(`${code} was given out twice`)
      link.passcode = view.passcode
      this.#homes.set(link, client.host)
    }
    link.states = [RESERVED]
  }

  async #update(client: Client, link: KnownLink | undefined): Promise<void> {
    const { code, passcode } = link ?? {}
    const replace = async () => {
      const url = this.#newUrl('u')
      await this.#replace(client, link, url, '/api/update', { code, passcode, url })
    }
    await replace()
    // A change that was answered 500 must not win over the next one, on another host.
    if (link && link.states.length > 1) await replace()
  }

  async #delete(client: Client, link: KnownLink | undefined): Promise<void> {
    const { code, passcode } = link ?? {}
    await this.#replace(client, link, DELETED, '/api/delete', { code, passcode })
  }

  /**
   * Changes the state of an own link, unless an earlier change was not answered, and may still
   * happen, or was a deletion.
   */
  async #replace(
    client: Client,
    link: KnownLink | undefined,
    next: string,
    path: string,
    body: object,
  ): Promise<void> {
    if (!link || link.states.includes(DELETED) || this.#unanswered.has(link)) return
    link.states = [...link.states, next]
    link.touched = true
    const deletions = next === DELETED ? this.#options.known.deletionsOf(link.code) : undefined
    deletions?.asked()
    const { lost } = client
    // A host that is behind must not refuse it, for example because it lacks the link.
    const view = await this.#change(client, path, body, [200])
    if (client.lost > lost) this.#unanswered.add(link)
    if (!view) return
    deletions?.happened()
    link.states = [next]
    this.#homes.set(link, client.host)
  }

  #mayBeLate({ host }: Client, link: KnownLink): boolean {
    return (this.#homes.get(link) ?? host) !== host
  }

  /** Hits of a deleted link, counted or not yet, are never those of a new one with its code. */
  async #recycle(client: Client, random: SeededRandom): Promise<void> {
    const code = `CYCLE${1000 + this.#options.known.next()}`
    for (let life = 0; life < 2; life++) {
      const link = await this.#reserveOwn(client, code)
      if (!link) return
      await this.#update(client, link)
      await this.#followSome(client, random, link)
      if (life === 0) await this.#delete(client, link)
      if (life === 0 && link.states.join() !== DELETED) return
    }
  }

  /** Reserves a code that no other client wants. */
  async #reserveOwn(client: Client, code: string): Promise<KnownLink | undefined> {
    const link = this.#options.known.add(code, { states: [DELETED, RESERVED] })
    const view = await this.#change<{ passcode: string }>(client, '/api/reserve', { code }, [201])
    if (!view) return undefined
    link.states = [RESERVED]
    link.passcode = view.passcode
    this.#homes.set(link, client.host)
    return link
  }

  async #followSome(client: Client, random: SeededRandom, link: KnownLink): Promise<void> {
    for (let rest = random.below(4); rest > 0; rest--) {
      if (link.states.length > 1 || !isActive(link.states[0])) return
      await this.#followOnce(client, link, this.#mayBeLate(client, link))
    }
  }

  async #bulk(client: Client, random: SeededRandom): Promise<void> {
    const { known } = this.#options
    const urls = Array.from({ length: 1 + random.below(BULK_MAX) }, () => this.#newUrl('s'))
    const asked = { urls: [...urls, urls[0]] }
    const view = await this.#change<{ results: Created[] }>(
      client,
      '/api/bulk-shorten',
      asked,
      [201],
    )
    if (!view) {
      known.unanswered.push(urls)
      return
    }
    for (const [at, { code, passcode }] of view.results.slice(0, -1).entries()) {
      known.add(code, { states: [urls[at] ?? ''], passcode: passcode ?? '' })
    }
    if (view.results.at(-1)?.code !== view.results[0]?.code) {
      this.problems.push(`${urls[0]} has two codes`)
    }
  }
}

/** A client with one connection at a time, to the host that it has chosen. */
class Client {
  host: TestHost
  /** Requests without an answer. */
  lost = 0
  readonly #hosts: readonly TestHost[]
  readonly #key: string
  readonly #connections = new Map<string, KeepAlive>()

  constructor({ hosts, key }: LoadOptions, first: number) {
    this.#hosts = hosts
    this.#key = key
    this.host = hosts[first % hosts.length] as TestHost
  }

  choose(random: SeededRandom): void {
    this.host = this.#hosts[random.below(this.#hosts.length)] as TestHost
  }

  moveOn(): void {
    this.host = this.#hosts[(this.#hosts.indexOf(this.host) + 1) % this.#hosts.length] as TestHost
  }

  /** Undefined if no answer came. */
  async ask(method: string, path: string, body?: object): Promise<KeepAliveAnswer | undefined> {
    const headers = path.startsWith('/api/') ? [`X-API-Key: ${this.#key}`] : []
    if (body) headers.push('Content-Type: application/json')
    const { url } = this.host
    try {
      if (url === undefined) throw new Error('the host does not run')
      const connection = this.#connections.get(url) ?? (await KeepAlive.open(url))
      this.#connections.set(url, connection)
      const text = body ? JSON.stringify(body) : ''
      const answer = await connection.ask(method, path, headers, text)
      if (answer.isLast) this.#drop(url)
      return answer
    } catch {
      this.lost++
      if (url !== undefined) this.#drop(url)
      await Bun.sleep(RECONNECT_MS)
      return undefined
    }
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close()
  }

  #drop(url: string): void {
    this.#connections.get(url)?.close()
    this.#connections.delete(url)
  }
}
