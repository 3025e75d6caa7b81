import { existsSync, readdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tieToThisProcess } from './leftovers.ts'

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
