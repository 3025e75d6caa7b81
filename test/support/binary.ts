import { Database } from 'bun:sqlite'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { freePort } from './ports.ts'

/** The compiled program, driven from outside as an operator would. */

const ROOT = join(import.meta.dir, '../..')
const DIST = join(ROOT, 'dist')
/** With a hash of the sources behind it. */
const OWN = 'hopcode-of-test-'
/** Binaries of other sources that no test has asked for since are removed. */
const UNUSED_MS = HOUR
const BUILD_TIMEOUT_MS = 5 * MINUTE

/** A port that was free may be another's by the time that the program asks for it. */
const PORT_TRIES = 3
/** Long enough for a busy machine. */
const START_MS = 60_000

let built: string | undefined

/**
 * The path of the program. It is built once for each state of the sources, so that the test files
 * of a run share one build, and dist/hopcode may be built again meanwhile.
 */
export async function binary(): Promise<string> {
  built ??= findOrBuild()
  return built
}

function findOrBuild(): string {
  mkdirSync(DIST, { recursive: true })
  // Files that run at the same time wait for the first one's build.
  using lock = new Database(join(DIST, 'test-build.lock'), { create: true })
  lock.run(`PRAGMA busy_timeout = ${BUILD_TIMEOUT_MS}`)
  lock.run('BEGIN EXCLUSIVE')
  const own = join(DIST, OWN + hashSources())
  if (!existsSync(own)) {
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, 'scripts/build.ts'], {
      cwd: ROOT,
    })
    if (exitCode !== 0) throw new Error(`the build failed: ${stderr}`)
    linkSync(join(DIST, 'hopcode'), own)
  }
  const now = new Date()
  utimesSync(own, now, now)
  removeUnused()
  return own
}

/** Of all that the build reads, apart from the packages, which bun.lock names. */
function hashSources(): string {
  const hash = new Bun.CryptoHasher('sha256')
  const sources = [...new Bun.Glob('{src,drizzle}/**/*').scanSync(ROOT)]
  const others = ['scripts/build.ts', 'package.json', 'bun.lock']
  for (const name of [...sources.filter((name) => !isTest(name)).sort(), ...others]) {
    hash.update(`${name}\n`).update(readFileSync(join(ROOT, name)))
  }
  return hash.digest('hex').slice(0, 16)
}

const isTest = (name: string) => name.endsWith('.test.ts')

function removeUnused(): void {
  for (const name of new Bun.Glob(`${OWN}*`).scanSync(DIST)) {
    const path = join(DIST, name)
    if (statSync(path).mtimeMs < Date.now() - UNUSED_MS) rmSync(path, { force: true })
  }
}

export type Settings = Record<string, string>

/** `REDIRECT_THREADS=4 npm test` runs every test with four redirect threads. */
export const redirectThreads = (): Settings => ({
  REDIRECT_THREADS: process.env.REDIRECT_THREADS ?? '1',
})

/** Budgets that never run out. */
export const UNLIMITED = {
  ANONYMOUS_READS_PER_MINUTE: '0',
  ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
  ENTERPRISE_WRITES_PER_MINUTE: '0',
  ENTERPRISE_READS_PER_MINUTE: '0',
}

/** Settings of a service on that folder with those budgets. */
export const unlimited = (dataDir: string): Settings => ({ DATA_DIR: dataDir, ...UNLIMITED })

interface Finished {
  code: number | null
  out: string
  err: string
}

/**
 * Runs a command to its end. `wrap`: words of a program that runs it. `program`: another build than
 * the run's own. `input`: its standard input.
 */
export async function command(
  args: readonly string[],
  env: Settings,
  wrap: readonly string[] = [],
  program?: string,
  input?: string,
): Promise<Finished> {
  const words = [...wrap, program ?? (await binary()), ...args]
  const stdin = input === undefined ? 'ignore' : new Blob([input])
  const child = Bun.spawn(words, { env, stdin, stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}

/** Makes an account. Returns its API key. `program`: another build than the run's own. */
export async function makeAccount(
  env: Settings,
  plan = 'enterprise',
  program?: string,
): Promise<string> {
  const args = ['account', 'create', '--email', `${plan}@example.com`, '--plan', plan, '--json']
  const { code, out, err } = await command(args, env, [], program)
  if (code !== 0) throw new Error(err)
  return JSON.parse(out).api_key
}

/** A running service. */
export class Service implements AsyncDisposable {
  readonly url: string
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  readonly #err: Promise<string>
  readonly #listens: Promise<boolean>

  private constructor(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>, port: number) {
    this.#child = child
    this.#err = new Response(child.stderr).text()
    this.#listens = saysThatItListens(child.stdout)
    this.url = `http://127.0.0.1:${port}`
  }

  /**
   * Starts the program on a free port and waits until it is ready. `wrap`: words of a program that
   * runs it, like a shell with limits. `program`: another build than the run's own.
   */
  static async start(
    env: Settings,
    wrap: readonly string[] = [],
    program?: string,
  ): Promise<Service> {
    const words = [...wrap, program ?? (await binary())]
    for (let tries = 1; ; tries++) {
      try {
        return await Service.#startOnce(words, env)
      } catch (error) {
        const isPortTaken = error instanceof Error && error.message.includes('cannot listen on')
        if (!isPortTaken || tries === PORT_TRIES) throw error
      }
    }
  }

  static async #startOnce(words: string[], env: Settings): Promise<Service> {
    const port = Number(env.PORT ?? freePort())
    const child = Bun.spawn(words, {
      env: { HOST: '127.0.0.1', PORT: String(port), ...redirectThreads(), ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const service = new Service(child, port)
    await service.#ready()
    return service
  }

  get pid(): number {
    return this.#child.pid
  }

  /** What it wrote on standard error, once it has ended. */
  get errors(): Promise<string> {
    return this.#err
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, { redirect: 'manual', ...init })
  }

  async post(path: string, key: string, body: unknown): Promise<Response> {
    return this.fetch(path, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  /** A new code of the URL. */
  async shorten(key: string, url: string): Promise<string> {
    const response = await this.post('/api/shorten', key, { url })
    return ((await response.json()) as { code: string }).code
  }

  async hitCount(code: string): Promise<number> {
    const response = await this.fetch(`/api/lookup/${code}`)
    const text = await response.text()
    if (!response.ok) throw new Error(`the look-up of ${code} says ${response.status} ${text}`)
    return (JSON.parse(text) as { hit_count: number }).hit_count
  }

  /**
   * Sends a signal and waits for the end. Returns the exit code, or the name of the signal that
   * ended it.
   */
  async end(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGKILL'): Promise<number | string> {
    this.#child.kill(signal)
    await this.#child.exited
    return this.#child.exitCode ?? this.#child.signalCode ?? 'unknown'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.end('SIGKILL')
  }

  async #ready(): Promise<void> {
    const deadline = performance.now() + START_MS
    // Another process may use the port: an answer counts once this process says that it listens.
    const tooLate = new Promise<false>((resolve) => setTimeout(resolve, START_MS, false).unref())
    const listens = await Promise.race([this.#listens, tooLate])
    while (listens && performance.now() < deadline && this.#child.exitCode === null) {
      const answer = await this.fetch('/-/ready').catch(() => undefined)
      // A full disk makes it degraded from the start on; it serves all the same.
      if (answer?.ok || (await answer?.text())?.includes('"degraded"')) return
      await Bun.sleep(5)
    }
    this.#child.kill('SIGKILL')
    throw new Error(`the service did not start: ${await this.#err}`)
  }
}

/** True once the program has said it; false if it ends without. Reads on to the end. */
function saysThatItListens(out: ReadableStream<Uint8Array>): Promise<boolean> {
  return new Promise((resolve) => {
    const read = async () => {
      let text = ''
      const decoder = new TextDecoder()
      for await (const bytes of out) {
        text += decoder.decode(bytes, { stream: true })
        if (/listens on +http/i.test(text)) resolve(true)
      }
      resolve(false)
    }
    read().catch(() => resolve(false))
  })
}
