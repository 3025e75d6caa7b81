import { Database } from 'bun:sqlite'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { journalFile } from '../../../src/hits/hits.ts'
import { binary, type Service, type Settings } from '../../support/binary.ts'
import { lengthWithoutZeros } from './crash-disk.ts'
import type { SeededRandom } from './seeded-random.ts'
import { traced } from './trace.ts'

/** What a client knows of a code. */
export type State = { url: string | null; passcode: string } | 'deleted'

/** A state that an answer told of. `marks`: words of the answers that did, each unique. */
export interface Change {
  state: State
  marks: string[]
}

/** Everything that the clients of a run were told, for comparison with what a crash left. */
export interface Told {
  /** What became of each code, in order. */
  codes: Map<string, Change[]>
  /** Codes of one bulk request: all there or none. */
  bulks: string[][]
  /** Keys that worked before the run. */
  firstKeys: string[]
  /** Keys made in the run, each a mark of its own answer. */
  keys: string[]
  calms: Calm[]
}

/** A moment without requests on their way, before the answer with the mark. */
export interface Calm {
  mark: string
  /** The hit journal then, without the zeros at its end: what the kernel may have written. */
  journal: Uint8Array
  /** Redirects that were committed by then. */
  committed: number
}

export const WORKERS = 6
const BULK = 5

/** Clients of a service, doing all that changes something, each with codes of its own. */
export class Clients {
  readonly told: Told
  readonly #service: Service
  readonly #dataDir: string
  readonly #random: SeededRandom
  readonly #key: string
  #serial = 0

  constructor(service: Service, dataDir: string, key: string, random: SeededRandom) {
    this.#service = service
    this.#dataDir = dataDir
    this.#key = key
    this.#random = random
    this.told = { codes: new Map(), bulks: [], firstKeys: [key], keys: [], calms: [] }
  }

  /** `operations` of each client, all clients at once, and then a calm. */
  async round(operations: number): Promise<void> {
    const workers = Array.from({ length: WORKERS }, (_, worker) => this.#work(worker, operations))
    await Promise.all(workers)
    await this.#sameUrlTwice()
    await this.#calm()
  }

  async #work(worker: number, operations: number): Promise<void> {
    const own: string[] = []
    for (let i = 0; i < operations; i++) {
      const code = own[this.#random.below(own.length)]
      const state = code && this.#stateOf(code)
      const kind = this.#random.below(10)
      if (!code || !state || kind < 3) own.push(await this.#create())
      else if (kind < 4) await this.#bulk()
      else if (state === 'deleted') await this.#reserve(code)
      else if (kind < 6) await this.#update(code, state.passcode)
      else if (kind < 8) await this.#delete(code, state.passcode)
      else if (state.url !== null) await this.#follow(code)
      else own.push(await this.#reserve(`R${worker}${'0'.repeat(4)}${this.#serial++}`))
    }
  }

  async #create(): Promise<string> {
    const url = this.#newUrl()
    const { body, mark } = await this.#post('/api/shorten', { url })
    this.#note(body.code, { url, passcode: body.passcode }, mark)
    return body.code
  }

  async #reserve(code: string): Promise<string> {
    const { body, mark } = await this.#post('/api/reserve', { code })
    this.#note(code, { url: null, passcode: body.passcode }, mark)
    return code
  }

  async #update(code: string, passcode: string): Promise<void> {
    const url = this.#newUrl()
    const { mark } = await this.#post('/api/update', { code, passcode, url })
    this.#note(code, { url, passcode }, mark)
  }

  async #delete(code: string, passcode: string): Promise<void> {
    const { mark } = await this.#post('/api/delete', { code, passcode })
    this.#note(code, 'deleted', mark)
  }

  async #bulk(): Promise<void> {
    const urls = Array.from({ length: BULK }, () => this.#newUrl())
    const { body, mark } = await this.#post('/api/bulk-shorten', { urls })
    const results = body.results as { code: string; url: string; passcode: string }[]
    for (const { code, url, passcode } of results) this.#note(code, { url, passcode }, mark)
    this.told.bulks.push(results.map(({ code }) => code))
  }

  async #follow(code: string): Promise<void> {
    for (let i = this.#random.below(20); i >= 0; i--) {
      const { status } = await this.#service.fetch(`/${code}`)
      if (status !== 302) throw new Error(`a redirect of ${code} is answered by ${status}`)
    }
  }

  /** Two simultaneous requests of one URL: one code, and both answers promise it. */
  async #sameUrlTwice(): Promise<void> {
    const url = this.#newUrl()
    const answers = await Promise.all([
      this.#post('/api/shorten', { url }),
      this.#post('/api/shorten', { url }),
    ])
    const passcode = answers.find(({ body }) => body.passcode !== null)?.body.passcode ?? ''
    const marks = answers.map(({ mark }) => mark)
    this.told.codes.set(answers[0].body.code, [{ state: { url, passcode }, marks }])
  }

  async #calm(): Promise<void> {
    const bytes = readFileSync(journalFile(this.#dataDir))
    const journal = bytes.subarray(0, lengthWithoutZeros(bytes))
    const db = new Database(join(this.#dataDir, 'hopcode.db'), { readonly: true })
    const { redirects } = db
      .query<{ redirects: number }, []>('SELECT redirects FROM hit_totals')
      .get() ?? { redirects: 0 }
    db.close()
    const mark = markOf(await this.#service.fetch('/api/lookup/NOSUCHCODE'))
    this.told.calms.push({ mark, journal, committed: redirects })
  }

  #newUrl(): string {
    const length = this.#random.chance(0.1) ? 4000 : this.#random.below(100)
    return `https://example.com/${this.#serial++}/${'x'.repeat(length)}`
  }

  #stateOf(code: string): State | undefined {
    return this.told.codes.get(code)?.at(-1)?.state
  }

  #note(code: string, state: State, mark: string): void {
    const changes = this.told.codes.get(code) ?? []
    changes.push({ state, marks: [mark] })
    this.told.codes.set(code, changes)
  }

  async #post(path: string, json: unknown) {
    const response = await this.#service.post(path, this.#key, json)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} is answered by ${response.status} ${text}`)
    const body = JSON.parse(text) as { code: string; passcode: string; results?: unknown }
    return { body, mark: markOf(response) }
  }
}

/** Runs a command under strace. Returns the API key that it printed. */
export async function tracedKey(
  args: readonly string[],
  env: Settings,
  trace: string,
): Promise<string> {
  const child = Bun.spawn([...traced(trace), await binary(), ...args, '--json'], {
    env,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text()).api_key
}

/** The files below a folder as they are, by their paths within it; not what SQLite makes anew. */
export function filesOf(folder: string): Map<string, Uint8Array> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
    .map((entry) => join(entry.parentPath, entry.name))
  return new Map(files.map((file) => [file.slice(folder.length + 1), readFileSync(file)]))
}

function markOf({ headers }: Response): string {
  const mark = headers.get('x-request-id')
  if (!mark) throw new Error('an answer has no x-request-id')
  return mark
}
