import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { TemporaryFolder } from './leftovers.ts'
import { copyMillion, type MillionFolder, millionFolder } from './million.ts'
import type { Progress } from './rounds.ts'
import type { LoadOptions } from './scenario.ts'
import type { Launch } from './server.ts'
import { hopcode, hopcodeProgram, WITHOUT_LIMITS } from './variants.ts'

/** The program under test and an empty data folder. Disposal removes the folders. */
export interface Workspace extends Disposable {
  program: string[]
  dataDir: string
  /** For other files of the scenario. */
  temporaryPath: string
}

export async function emptyWorkspace(options: LoadOptions): Promise<Workspace> {
  const program = await hopcodeProgram(options)
  const temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  mkdirSync(dataDir)
  return {
    program,
    dataDir,
    temporaryPath: temporary.path,
    [Symbol.dispose]: () => temporary[Symbol.dispose](),
  }
}

/** The program under test and a copy of the million links, for a service without limits. */
export interface MillionWorkspace extends Workspace {
  folder: MillionFolder
  launch: Launch
  /** Replaces the data folder with a new copy. Call it while no service uses the folder. */
  renew(): void
}

/**
 * `settings` are added to those of a service without limits. `prepare` replaces the folder that is
 * copied.
 */
export async function millionWorkspace(
  options: LoadOptions,
  say: Progress,
  settings: Record<string, string> = {},
  prepare: (
    plain: MillionFolder,
    program: string[],
    say: Progress,
  ) => Promise<MillionFolder> = async (plain) => plain,
): Promise<MillionWorkspace> {
  const program = await hopcodeProgram(options)
  const temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  const from = await prepare(await (options.million ?? millionFolder)(say), program, say)
  const folder = copyMillion(from, dataDir)
  return {
    program,
    dataDir,
    folder,
    launch: hopcode(program, dataDir, { ...WITHOUT_LIMITS, ...settings }),
    renew: () => {
      rmSync(dataDir, { recursive: true })
      copyMillion(from, dataDir)
    },
    temporaryPath: temporary.path,
    [Symbol.dispose]: () => temporary[Symbol.dispose](),
  }
}
