import { fileURLToPath } from 'node:url'
import { tieToThisProcess } from './leftovers.ts'

/**
 * Runs in the process of the generator: reads the options from standard input, prints the result.
 */
export async function answerAsProcess<Options>(
  generate: (options: Options) => Promise<unknown>,
): Promise<void> {
  await Bun.write(Bun.stdout, JSON.stringify(await generate(await Bun.stdin.json())))
  // Connections and timers that are left would keep the process alive.
  process.exit(0)
}

/** Seconds that a generator's process may take in addition to the load and its last responses. */
const GRACE_SECONDS = 30

/**
 * The engine collects garbage on the main thread, which has the priority that a generator asks for.
 * It would wait for the threads that help it while the service uses all cores.
 */
const GARBAGE_ON_MAIN_THREAD = { BUN_JSC_useConcurrentGC: '0', BUN_JSC_numberOfGCMarkers: '1' }

export interface OwnProcessResult<Result> {
  result: Result
  /** User and system time that the generator took. */
  cpuSeconds: number
}

/**
 * Starts `file`, a program that calls answerAsProcess. Returns its result; throws if it fails or
 * takes too long.
 */
export async function runInOwnProcess<Result>(
  file: URL,
  options: { seconds: number; drainSeconds?: number },
): Promise<OwnProcessResult<Result>> {
  const child = Bun.spawn([process.execPath, fileURLToPath(file)], {
    env: { ...process.env, ...GARBAGE_ON_MAIN_THREAD },
    stdin: Buffer.from(JSON.stringify(options)),
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: Math.ceil(options.seconds + (options.drainSeconds ?? 0) + GRACE_SECONDS) * 1000,
  })
  tieToThisProcess(child)
  const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited])
  if (exitCode !== 0) throw new Error(`the load generator ended with ${exitCode}`)
  const cpuMicroseconds = Number(child.resourceUsage()?.cpuTime.total ?? 0)
  return { result: JSON.parse(text) as Result, cpuSeconds: cpuMicroseconds / 1e6 }
}
