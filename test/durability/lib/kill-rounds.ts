import { Service, unlimited } from '../../support/binary.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { audit } from './kill-audit.ts'
import { KeyChain, runProgram } from './kill-keys.ts'
import { Known } from './kill-known.ts'
import { Load } from './kill-load.ts'
import { SeededRandom } from './seeded-random.ts'

export interface RoundOptions {
  /** A build of the program. */
  program: string
  rounds: number
  seed: number
  /** A new data folder after this many. */
  perFolder?: number
}

export interface RoundResult {
  /** Empty if nothing was lost, came back or was counted twice. */
  problems: string[]
  rounds: number
  /** Requests answered under load. */
  answers: number
  redirects: number
  links: number
  rotations: number
  /** Kills of starts, beside those of the rounds. */
  killedStarts: number
}

interface Finding {
  check: string
  status: string
  says: string
}

/** One data folder after the other, each killed several times, until something is wrong. */
export async function runRounds(options: RoundOptions): Promise<RoundResult> {
  const { rounds, perFolder = 10 } = options
  const result: RoundResult = {
    problems: [],
    rounds: 0,
    answers: 0,
    redirects: 0,
    links: 0,
    rotations: 0,
    killedStarts: 0,
  }
  while (result.rounds < rounds && result.problems.length === 0) {
    const count = Math.min(perFolder, rounds - result.rounds)
    using folder = temporaryFolder()
    const victim = await Victim.create(folder.path, options, result)
    for (let i = 0; i < count && result.problems.length === 0; i++) {
      await victim.round(result.rounds)
      result.rounds++
    }
    if (result.problems.length === 0) await victim.finish()
  }
  return result
}

/** A data folder, and what clients know of it. */
class Victim {
  readonly #program: string
  readonly #seed: number
  readonly #env: Record<string, string>
  readonly #result: RoundResult
  readonly #known = new Known()
  readonly #keys: KeyChain
  #key = ''
  /** How long the last start took: a busy machine takes longer. */
  #startMs = 150

  private constructor(dataDir: string, { program, seed }: RoundOptions, result: RoundResult) {
    this.#program = program
    this.#seed = seed
    this.#result = result
    this.#env = {
      ...unlimited(dataDir),
      BASE_URL: 'http://hop.test',
    }
    this.#keys = new KeyChain(program, this.#env)
  }

  static async create(
    dataDir: string,
    options: RoundOptions,
    result: RoundResult,
  ): Promise<Victim> {
    const victim = new Victim(dataDir, options, result)
    const args = ['account', 'create', '--email', 'load@example.com', '--plan', 'enterprise']
    const { out } = await runProgram(options.program, [...args, '--json'], victim.#env)
    victim.#key = JSON.parse(out).api_key
    await victim.#keys.create()
    return victim
  }

  /** Start, look, load, kill. */
  async round(round: number): Promise<void> {
    const seed = this.#seed ^ (round * 0x9e3779b1)
    const random = new SeededRandom(seed)
    const env = { ...this.#env, HIT_FLUSH_MS: String([1, 5, 25, 250][random.below(4)]) }
    while (random.chance(0.25)) await this.#killStart(env, random.next())
    const loadMs = 100 + 300 * random.next()
    const rotationAt = random.chance(0.5) ? random.next() * loadMs : undefined
    const isCalm = random.chance(0.2)
    const before = performance.now()
    await using service = await Service.start(env, [], this.#program)
    this.#startMs = performance.now() - before
    await this.#look(service)
    const load = await Load.start({
      url: service.url,
      key: this.#key,
      known: this.#known,
      seed,
      round,
    })
    let isKilled = false
    const rotate = async () => {
      await Bun.sleep(rotationAt ?? 0)
      this.#note(round, await this.#keys.rotate(random, () => isKilled))
    }
    const rotation = rotationAt === undefined ? undefined : rotate()
    await Bun.sleep(loadMs)
    // With nothing on its way every count is exact; else some answers are lost on their way.
    if (isCalm) await load.stop()
    load.expectKill()
    isKilled = true
    await service.end('SIGKILL')
    await load.ended()
    await rotation
    this.#result.answers += load.answers
    this.#note(round, load.problems)
  }

  async finish(): Promise<void> {
    const last = this.#result.rounds
    this.#note(last, await this.#check())
    await using service = await Service.start(this.#env, [], this.#program)
    await this.#look(service)
    const { redirects, links } = this.#known
    this.#result.redirects += redirects.least
    this.#result.links += links.size
    this.#result.rotations += this.#keys.rotations
  }

  async #look(service: Service): Promise<void> {
    const problems = await audit(service, this.#key, this.#known)
    const keys = await this.#keys.audit((path, init) => service.fetch(path, init))
    this.#note(this.#result.rounds, [...problems, ...keys])
  }

  /** `hopcode check` on what the kill left. */
  async #check(): Promise<string[]> {
    const args = ['check', '--json']
    const { out, err } = await runProgram(this.#program, args, this.#env)
    if (out === '') return [`check: ${err}`]
    const { findings } = JSON.parse(out) as { findings: Finding[] }
    return findings
      .filter(({ status }) => status === 'problem')
      .map(({ check, says }) => `check of ${check}: ${says}`)
  }

  /** A start counts what the last process left: killed in the middle, the next must do it right. */
  async #killStart(env: Record<string, string>, share: number): Promise<void> {
    const afterMs = share * this.#startMs
    await runProgram(this.#program, [], { ...env, HOST: '127.0.0.1', PORT: '0' }, afterMs)
    this.#result.killedStarts++
  }

  #note(round: number, problems: readonly string[]): void {
    const shown = problems.slice(0, 20).map((problem) => `round ${round}: ${problem}`)
    this.#result.problems.push(...shown)
  }
}
