import { KeepAlive, type KeepAliveAnswer } from './keep-alive.ts'
import { DELETED, isActive, type Known, type KnownLink, RESERVED, Tally } from './kill-known.ts'
import { SeededRandom } from './seeded-random.ts'

/** The most; in a round with one alone, nothing comes between its changes. */
const WRITERS_MAX = 6
const FOLLOWERS = 24
const SHARED_URLS = 8
const BULK_MAX = 150

interface LoadOptions {
  url: string
  key: string
  known: Known
  /** Of this round's plan: which client asks for what. */
  seed: number
  round: number
}

interface Created {
  code: string
  url: string
  passcode: string | null
  reused: boolean
}

/** Clients of every kind at once, each with a connection and a plan of its own. */
export class Load {
  /** What an answer said that it must not say. */
  readonly problems: string[] = []
  answers = 0
  /** From now on an answer that does not come is nobody's fault. */
  #killed = false
  #stopped = false
  readonly #options: LoadOptions
  readonly #followable: KnownLink[]
  #clients: Promise<void>[] = []
  readonly #connections: KeepAlive[] = []

  private constructor(options: LoadOptions) {
    this.#options = options
    this.#followable = options.known.followable()
  }

  static async start(options: LoadOptions): Promise<Load> {
    const load = new Load(options)
    const { url, known, seed } = options
    const writers = new SeededRandom(seed).chance(0.3) ? 1 : WRITERS_MAX
    const count = writers + FOLLOWERS + 1
    for (let i = 0; i < count; i++) load.#connections.push(await KeepAlive.open(url))
    const changeable = known.changeable()
    load.#clients = load.#connections.map((connection, i) => {
      const random = new SeededRandom(seed ^ (i * 0x85ebca6b))
      if (i > writers) return load.#follow(connection, random)
      if (i === writers) return load.#read(connection, random)
      const own = changeable.filter((_, link) => link % writers === i)
      return load.#write(connection, random, own)
    })
    return load
  }

  /** Every client ends after the answer that it waits for. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }

  expectKill(): void {
    this.#killed = true
  }

  /** After the kill: resolves once every client has seen it. */
  async ended(): Promise<void> {
    await Promise.all(this.#clients)
    for (const connection of this.#connections) connection.close()
  }

  get #goesOn(): boolean {
    return !this.#stopped && this.problems.length === 0
  }

  async #ask(
    connection: KeepAlive,
    method: string,
    path: string,
    body?: object,
  ): Promise<KeepAliveAnswer | undefined> {
    const headers = [`X-API-Key: ${this.#options.key}`]
    if (body) headers.push('Content-Type: application/json')
    try {
      const text = body ? JSON.stringify(body) : ''
      const answer = await connection.ask(
        method,
        path,
        path.startsWith('/api/') ? headers : [],
        text,
      )
      this.answers++
      return answer
    } catch (error) {
      if (!this.#killed) this.problems.push(`${method} ${path} before the kill: ${error}`)
      return undefined
    }
  }

  #wrong(what: string, { status, body }: KeepAliveAnswer): void {
    this.problems.push(`${what}: ${status} ${body.slice(0, 200)}`)
  }

  async #read(connection: KeepAlive, random: SeededRandom): Promise<void> {
    while (this.#goesOn) {
      const link = this.#followable[random.below(this.#followable.length)]
      const path = link && random.chance(0.8) ? `/api/lookup/${link.code}` : '/api/list?limit=20'
      const least = link?.hits.least ?? 0
      const answer = await this.#ask(connection, 'GET', path)
      if (!answer) return
      if (answer.status !== 200) return this.#wrong(path, answer)
      if (link && path.startsWith('/api/lookup/')) {
        const { hit_count } = JSON.parse(answer.body)
        if (!(hit_count >= least && hit_count <= link.hits.most)) {
          this.#wrong(`${path} should say ${least} to ${link.hits.most} hits`, answer)
        }
      }
    }
  }

  async #follow(connection: KeepAlive, random: SeededRandom): Promise<void> {
    while (this.#goesOn) {
      const link = this.#followable[random.below(this.#followable.length)]
      // The first links of a folder are only just being made.
      const goesOn = link
        ? await this.#followOnce(connection, link)
        : (await this.#ask(connection, 'GET', '/-/live')) !== undefined
      if (!goesOn) return
    }
  }

  /** False when no 302 came. */
  async #followOnce(connection: KeepAlive, link: KnownLink): Promise<boolean> {
    const { redirects } = this.#options.known
    const { hits } = link
    link.touched = true
    hits.asked()
    redirects.asked()
    const answer = await this.#ask(connection, 'GET', `/${link.code}`)
    if (!answer) return false
    if (answer.status !== 302) {
      this.#wrong(`GET /${link.code}, which is ${link.states}`, answer)
      return false
    }
    hits.happened()
    redirects.happened()
    return true
  }

  async #write(connection: KeepAlive, random: SeededRandom, own: KnownLink[]): Promise<void> {
    const choices = [
      [0.3, () => this.#shortenNew(connection, own, random.chance(0.5))],
      [0.4, () => this.#shortenShared(connection, random)],
      [0.5, () => this.#reserve(connection, random, own)],
      [0.7, () => this.#update(connection, own[random.below(own.length)])],
      [0.82, () => this.#delete(connection, own[random.below(own.length)])],
      [0.92, () => this.#recycle(connection, random)],
      [1, () => this.#bulk(connection, random)],
    ] as const
    while (this.#goesOn) {
      const drawn = random.next()
      const [, act] = choices.find(([end]) => drawn < end) ?? choices[0]
      if ((await act()) === false) return
    }
  }

  /** Undefined when no answer came; a wrong answer is a problem. */
  async #change<View>(
    connection: KeepAlive,
    path: string,
    body: object,
    statuses: readonly number[],
  ): Promise<(View & { status: number }) | undefined> {
    const answer = await this.#ask(connection, 'POST', path, body)
    if (!answer) return undefined
    if (!statuses.includes(answer.status)) {
      this.#wrong(`${path} ${JSON.stringify(body).slice(0, 200)}`, answer)
      return undefined
    }
    return { ...JSON.parse(answer.body), status: answer.status }
  }

  async #shortenNew(connection: KeepAlive, own: KnownLink[], kept: boolean): Promise<boolean> {
    const link = await this.#shorten(connection, this.#newUrl('s'))
    if (!link) return false
    link.kept = kept
    if (kept) this.#followable.push(link)
    else own.push(link)
    return true
  }

  #newUrl(kind: string): string {
    return `https://example.com/${kind}/${this.#options.known.next()}`
  }

  async #shorten(connection: KeepAlive, url: string): Promise<KnownLink | undefined> {
    const { known } = this.#options
    const created = await this.#change<Created>(connection, '/api/shorten', { url }, [201])
    if (created) return known.add(created.code, { states: [url], passcode: created.passcode ?? '' })
    known.unanswered.push([url])
    return undefined
  }

  /** Several clients may be at the same URL in the same moment: they must be told one code. */
  async #shortenShared(connection: KeepAlive, random: SeededRandom): Promise<boolean> {
    const { known, round } = this.#options
    // Half of them are new in this round, half of the folder's first.
    const group = random.chance(0.5) ? round : 0
    const url = `https://example.com/s/shared/${group}/${random.below(SHARED_URLS)}`
    const before = known.sharedCodes.get(url)
    const created = await this.#change<Created>(connection, '/api/shorten', { url }, [200, 201])
    if (!created) {
      if (before === undefined) known.unanswered.push([url])
      return false
    }
    const told = known.sharedCodes.get(url)
    if (told !== undefined && told !== created.code) {
      this.problems.push(`${url} is ${told}, and ${created.code} too`)
    }
    if (before !== undefined && !created.reused) this.problems.push(`${url} is not reused`)
    known.sharedCodes.set(url, created.code)
    if (told === undefined) {
      this.#followable.push(known.add(created.code, { states: [url], kept: true }))
    }
    return true
  }

  async #reserve(connection: KeepAlive, random: SeededRandom, own: KnownLink[]): Promise<boolean> {
    const { known, round } = this.#options
    // Some codes are wanted by all, in the same moment.
    const wanted = random.chance(0.3)
      ? `WANTED${round}X${random.below(3)}`
      : `OWN${1000 + known.next()}`
    const link = known.links.get(wanted) ?? known.add(wanted, { states: [DELETED] })
    if (link.states[0] === DELETED) link.states = [DELETED, RESERVED]
    link.touched = true
    const body = { code: wanted }
    const reserved = await this.#change<{ passcode?: string }>(
      connection,
      '/api/reserve',
      body,
      [201, 409],
    )
    if (!reserved) return false
    if (reserved.status === 201) {
      if (link.passcode !== undefined) this.problems.push(`${wanted} was given out twice`)
      link.passcode = reserved.passcode
      if (!wanted.startsWith('WANTED')) own.push(link)
    }
    link.states = [RESERVED]
    return true
  }

  async #update(connection: KeepAlive, link: KnownLink | undefined): Promise<boolean> {
    const state = link?.states[0]
    if (!link || state === DELETED) return true
    const { code, passcode } = link
    const url = this.#newUrl('u')
    link.states = [state as string, url]
    link.touched = true
    if (!(await this.#change(connection, '/api/update', { code, passcode, url }, [200])))
      return false
    link.states = [url]
    return true
  }

  async #delete(connection: KeepAlive, link: KnownLink | undefined): Promise<boolean> {
    const state = link?.states[0]
    if (!link || state === DELETED) return true
    const { code, passcode } = link
    link.states = [state as string, DELETED]
    link.touched = true
    const deletions = this.#options.known.deletionsOf(code)
    deletions.asked()
    if (!(await this.#change(connection, '/api/delete', { code, passcode }, [200]))) return false
    deletions.happened()
    link.states = [DELETED]
    return true
  }

  /** Hits of a deleted link, counted or not yet, are never those of a new one with its code. */
  async #recycle(connection: KeepAlive, random: SeededRandom): Promise<boolean> {
    const link = await this.#shorten(connection, this.#newUrl('s'))
    if (!link || !(await this.#followSome(connection, random, link))) return false
    if (!(await this.#delete(connection, link))) return false
    const { code } = link
    Object.assign(link, { states: [DELETED, RESERVED], hits: new Tally(), passcode: undefined })
    const view = await this.#change<{ passcode: string }>(
      connection,
      '/api/reserve',
      { code },
      [201],
    )
    if (!view) return false
    Object.assign(link, { states: [RESERVED], passcode: view.passcode })
    if (!(await this.#update(connection, link))) return false
    return this.#followSome(connection, random, link)
  }

  async #followSome(
    connection: KeepAlive,
    random: SeededRandom,
    link: KnownLink,
  ): Promise<boolean> {
    for (let rest = random.below(6); rest > 0; rest--) {
      if (!(await this.#followOnce(connection, link))) return false
    }
    return isActive(link.states[0])
  }

  async #bulk(connection: KeepAlive, random: SeededRandom): Promise<boolean> {
    const { known } = this.#options
    const urls = Array.from({ length: 1 + random.below(BULK_MAX) }, () => this.#newUrl('s'))
    const asked = { urls: [...urls, urls[0]] }
    const view = await this.#change<{ results: Created[] }>(
      connection,
      '/api/bulk-shorten',
      asked,
      [201],
    )
    if (!view) {
      known.unanswered.push(urls)
      return false
    }
    const { results } = view
    for (const { code, url, passcode } of results.slice(0, -1)) {
      known.add(code, { states: [url], passcode: passcode ?? '' })
    }
    if (results.at(-1)?.code !== results[0]?.code) this.problems.push(`${urls[0]} has two codes`)
    return true
  }
}
