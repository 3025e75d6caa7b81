import type { Settings } from '../../support/binary.ts'
import type { SeededRandom } from './seeded-random.ts'

/** Runs a command of the given build. `killAfterMs`: it is killed then, if it has not ended. */
export async function runProgram(
  program: string,
  args: readonly string[],
  env: Settings,
  killAfterMs?: number,
): Promise<{ code: number | null; out: string; err: string }> {
  const child = Bun.spawn([program, ...args], { env, stdout: 'pipe', stderr: 'pipe' })
  const timer =
    killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  clearTimeout(timer)
  return { code: child.exitCode, out, err }
}

const EMAIL = 'rotated@example.com'
const START_MS = 80

/** The keys of one account, changed by commands beside the service. */
export class KeyChain {
  readonly #program: string
  readonly #env: Settings
  /** True: it works. False: it has ended. Undefined: an unanswered command may have ended it. */
  readonly #keys = new Map<string, boolean | undefined>()
  rotations = 0

  constructor(program: string, env: Settings) {
    this.#program = program
    this.#env = env
  }

  async create(): Promise<void> {
    const args = ['account', 'create', '--email', EMAIL, '--plan', 'enterprise', '--json']
    const { code, out, err } = await runProgram(this.#program, args, this.#env)
    if (code !== 0) throw new Error(err)
    this.#keys.set(JSON.parse(out).api_key, true)
  }

  /**
   * Returns what is wrong, if anything. The command itself is killed at times, and fails if the
   * service is killed before it answers.
   */
  async rotate(random: SeededRandom, isServiceKilled: () => boolean): Promise<string[]> {
    const now = random.chance(0.5)
    const killAfterMs = random.chance(0.3) ? START_MS + random.below(2 * START_MS) : undefined
    if (now) this.#mark(undefined)
    const args = ['key', 'rotate', '--email', EMAIL, '--json', ...(now ? ['--now'] : [])]
    const { code, out, err } = await runProgram(this.#program, args, this.#env, killAfterMs)
    // What was printed whole is acknowledged, though the command may not have ended by itself.
    const key = /"api_key":"(\w+)"\}\n/.exec(out)?.[1]
    if (key === undefined) {
      const isKilled = killAfterMs !== undefined && code === null
      const isUnanswered = code === 1 && isServiceKilled()
      return isKilled || isUnanswered ? [] : [`key rotate ended with ${code}: ${err}`]
    }
    if (now) this.#mark(false)
    this.#keys.set(key, true)
    this.rotations++
    return []
  }

  /** Asks with every key. Returns what is wrong. */
  async audit(fetch: (path: string, init: RequestInit) => Promise<Response>): Promise<string[]> {
    const problems: string[] = []
    for (const [key, works] of this.#keys) {
      const headers = { 'x-api-key': key }
      const { status } = await fetch('/api/list?limit=1', { headers })
      const found = { 200: true, 401: false }[status]
      if (found === undefined || (works !== undefined && works !== found)) {
        problems.push(`a key that ${works ? 'works' : 'has ended'} is answered ${status}`)
      }
      this.#keys.set(key, found)
    }
    return problems
  }

  #mark(works: false | undefined): void {
    for (const [key, before] of this.#keys) if (before !== false) this.#keys.set(key, works)
  }
}
