import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { command, Service, type Settings } from '../support/binary.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { COUNTER, type Observed, type ProbeTarget } from './probe.ts'

/** One figure of an attack, and the most that it may be. */
export interface Figure {
  name: string
  value: number
  unit: string
  max: number
  /** Depends on the machine's speed or allocator: printed, and never asserted by a test. */
  isTiming: boolean
}

export const structure = (name: string, value: number, max: number, unit = ''): Figure => ({
  name,
  value,
  unit,
  max,
  isTiming: false,
})

export const timing = (name: string, value: number, max: number, unit: string): Figure => ({
  name,
  value,
  unit,
  max,
  isTiming: true,
})

export const isWithin = ({ name, value, max }: Figure): boolean =>
  name.startsWith('status') ? value === max : value <= max

export interface Attack {
  name: string
  /** What it does, in a line. */
  about: string
  /** `isShort`: a small form whose structure a test asserts. */
  run(program: string, scale: { isShort: boolean }): Promise<Figure[]>
}

export const median = (sorted: readonly number[]): number =>
  sorted[Math.floor(sorted.length / 2)] ?? 0
export const p99 = (sorted: readonly number[]): number =>
  sorted[Math.floor(sorted.length * 0.99)] ?? 0
export const highest = (values: readonly number[]): number => Math.max(0, ...values)

/** Distinct URLs, of which each ends as `tail` says. */
export const longUrls = (count: number, tail: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => `https://x.example/${i}/${tail(i)}`)

type Probe = Pick<ProbeTarget, 'request' | 'status'>

const PROXY = '127.0.0.1'
const DESTINATION = 'https://example.com/followed'

/** What a client sees while the attack runs, and the memory that the attack costs. */
export async function observe(
  { url, pid }: Pick<Service, 'url' | 'pid'>,
  { attack, probe }: { attack: () => Promise<void>; probe: Probe },
): Promise<Observed> {
  const worker = new Worker(new URL('./probe.ts', import.meta.url))
  const observed = new Promise<Observed>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Observed>) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message))
  })
  const target: ProbeTarget = { ...probe, port: Number(new URL(url).port), pid }
  worker.postMessage(target)
  // The first look at memory comes before the attack.
  await Bun.sleep(100)
  try {
    await attack()
  } finally {
    worker.postMessage('stop')
  }
  const result = await observed
  worker.terminate()
  return result
}

/** A running service with an attacker, a victim and a followed link. */
export class Attacked implements AsyncDisposable {
  readonly service: Service
  readonly dataDir: string
  readonly program: string
  /** A path that redirects. */
  readonly path: string
  readonly attacker: Member
  readonly victim: Member
  readonly #folder: Disposable
  readonly env: Settings

  private constructor(parts: {
    service: Service
    folder: Disposable & { path: string }
    env: Settings
    program: string
    path: string
    attacker: Member
    victim: Member
  }) {
    this.service = parts.service
    this.#folder = parts.folder
    this.dataDir = parts.folder.path
    this.env = parts.env
    this.program = parts.program
    this.path = parts.path
    this.attacker = parts.attacker
    this.victim = parts.victim
  }

  /**
   * `settings`: beside the attack's own. `wrap`: words of a program that runs the service. The
   * attacker and the victim are on the Free plan.
   */
  static async start(
    program: string,
    settings: Settings = {},
    wrap: readonly string[] = [],
    folder = temporaryFolderInMemory(),
  ): Promise<Attacked> {
    const env: Settings = {
      DATA_DIR: folder.path,
      LOG_LEVEL: 'warn',
      TRUSTED_PROXIES: PROXY,
      ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
      ...settings,
    }
    const attacker = await Member.create(program, env, 'attacker@example.com')
    const victim = await Member.create(program, env, 'victim@example.com')
    const service = await Service.start(env, wrap, program)
    const path = `/${await service.shorten(victim.key, DESTINATION)}`
    return new Attacked({ service, folder, env, program, path, attacker, victim })
  }

  get port(): number {
    return Number(new URL(this.service.url).port)
  }

  /** Runs a command of the program on the attacked folder. Returns what it printed. */
  async command(...words: string[]): Promise<string> {
    return run(this.program, words, this.env)
  }

  /** A browser with a session of the member. `from`: its address. */
  async signIn(member: Member, from: string): Promise<Visitor> {
    const printed = await this.command('account', 'reset-password', '--email', member.email)
    const link = /\/app\/reset\/[\w-]+/.exec(printed)?.[0] ?? ''
    const visitor = new Visitor(this.service, { from })
    const { status } = await visitor.post(link, { password: PASSWORD })
    if (status !== 303) throw new Error(`${member.email} cannot sign in: ${status}`)
    return visitor
  }

  /**
   * What a client sees while the attack runs, a visitor of the link if not told otherwise, and the
   * memory that the attack costs.
   */
  observe(attack: () => Promise<void>, probe: Probe = this.visit()): Promise<Observed> {
    return observe(this.service, { attack, probe })
  }

  /** What visitors of the link and clients of the API see while the attack runs. */
  async observeBoth(attack: () => Promise<void>): Promise<[visits: Observed, api: Observed]> {
    let visits: Observed | undefined
    const api = await this.observe(async () => {
      visits = await this.observe(attack)
    }, this.lookup())
    return [visits as Observed, api]
  }

  /** Follows the link. */
  visit(): Probe {
    return { request: `GET ${this.path} HTTP/1.1\r\nHost: hop.test\r\n\r\n`, status: 302 }
  }

  /** Reads about the link over the API. */
  lookup(): Probe {
    return {
      request: `GET /api/lookup${this.path} HTTP/1.1\r\nHost: hop.test\r\n\r\n`,
      status: 200,
    }
  }

  /** Creates one link after the other. */
  create(member: Member): Probe {
    return postProbe('/api/shorten', member, { url: `https://victim.example/${COUNTER}` })
  }

  /** Creates 100 links at once, again and again. */
  bulk(member: Member): Probe {
    const urls = longUrls(100, (i) => `${i}/${COUNTER}`)
    return postProbe('/api/bulk-shorten', member, { urls })
  }

  /** Milliseconds, ascending, of `times` calls one after the other. */
  async timed(times: number, call: () => Promise<Response>): Promise<number[]> {
    const taken: number[] = []
    for (let i = 0; i < times; i++) {
      const start = performance.now()
      const response = await call()
      await response.arrayBuffer()
      taken.push(performance.now() - start)
    }
    return taken.sort((a, b) => a - b)
  }

  post(path: string, { key }: Member, body: string | Uint8Array<ArrayBuffer>): Promise<Response> {
    return this.service.fetch(path, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body,
    })
  }

  get(path: string, { key }: Member): Promise<Response> {
    return this.service.fetch(path, { headers: { 'x-api-key': key } })
  }

  /** Bytes of the database with its write-ahead log. */
  databaseBytes(): number {
    return readdirSync(this.dataDir)
      .filter((name) => /^hopcode\.db(-wal)?$/.test(name))
      .map((name) => join(this.dataDir, name))
      .filter((file) => existsSync(file))
      .reduce((sum, file) => sum + statSync(file).size, 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    this.#folder[Symbol.dispose]()
  }
}

function postProbe(path: string, { key }: Member, json: object): Probe {
  const body = JSON.stringify(json)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: hop.test',
    `X-API-Key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  return { request: `${head.join('\r\n')}\r\n\r\n${body}`, status: 201 }
}

/** An account of the attacked service. */
export class Member {
  readonly email: string
  readonly key: string

  private constructor(email: string, key: string) {
    this.email = email
    this.key = key
  }

  static async create(
    program: string,
    env: Settings,
    email: string,
    plan = 'free',
  ): Promise<Member> {
    const words = ['account', 'create', '--email', email, '--plan', plan, '--json']
    return new Member(email, JSON.parse(await run(program, words, env)).api_key)
  }
}

async function run(program: string, words: readonly string[], env: Settings): Promise<string> {
  const { code, out, err } = await command(words, env, [], program)
  if (code !== 0) throw new Error(`hopcode ${words.join(' ')} failed: ${err}`)
  return out
}
