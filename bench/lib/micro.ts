import { existsSync, readdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tieToThisProcess } from './leftovers.ts'
import { describeMachine } from './machine.ts'

const FOLDER = resolve(import.meta.dir, '../micro')
const DEADLINE_MS = 120_000

export interface MicroReport {
  name: string
  /** Everything it printed. */
  output: string
}

export const microNames = (): string[] =>
  existsSync(FOLDER)
    ? readdirSync(FOLDER)
        .filter((file) => file.endsWith('.bench.ts'))
        .map((file) => basename(file, '.bench.ts'))
        .sort()
    : []

/** Runs one micro bench in its own process. Throws if it fails. */
export async function runMicro(name: string): Promise<MicroReport> {
  const child = Bun.spawn([process.execPath, join(FOLDER, `${name}.bench.ts`)], {
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: DEADLINE_MS,
  })
  tieToThisProcess(child)
  const [output, exitCode] = await Promise.all([child.stdout.text(), child.exited])
  if (exitCode !== 0) throw new Error(`micro/${name} failed with ${exitCode}:\n${output}`)
  return { name, output }
}

/** The first line of a micro bench: machine, load, versions. */
export function printMachine(): void {
  const { processor, cores, load, bun, commit } = describeMachine()
  console.log(`${cores} x ${processor}, load ${load.toFixed(2)}, bun ${bun}, commit ${commit}`)
}

/**
 * Runs each variant of the micro bench `file` in a separate process, `rounds` times, every other
 * round in reverse. The process gets the variant's name and `argsOf()` as arguments, and prints its
 * timing as JSON. Throws if a process fails.
 */
export async function timeInTurn<Variant extends string, Timing>(
  file: string,
  variants: readonly Variant[],
  rounds: number,
  argsOf: (variant: Variant) => readonly (string | number)[] = () => [],
): Promise<Record<Variant, Timing[]>> {
  const timings = new Map<Variant, Timing[]>(variants.map((variant) => [variant, []]))
  for (let round = 0; round < rounds; round++) {
    for (const variant of round % 2 === 0 ? variants : variants.toReversed()) {
      const words = [process.execPath, file, variant, ...argsOf(variant).map(String)]
      const child = tieToThisProcess(Bun.spawn(words, { stdout: 'pipe', stderr: 'inherit' }))
      const [text, exitCode] = await Promise.all([child.stdout.text(), child.exited])
      if (exitCode !== 0) throw new Error(`${variant} failed with ${exitCode}`)
      timings.get(variant)?.push(JSON.parse(text) as Timing)
    }
  }
  return Object.fromEntries(timings) as Record<Variant, Timing[]>
}
