import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../../..')

export interface Mutation {
  file: string
  /** Global patterns of what stands there once, and what takes its place. */
  changes: readonly (readonly [from: RegExp, to: string])[]
}

/**
 * Builds the program from a copy of its source in `folder` with a fault put in: what a test finds
 * wrong with it shows that the test can. Returns the path of the program.
 */
export function buildMutant(folder: string, { file, changes }: Mutation): string {
  for (const name of ['src', 'drizzle', 'scripts', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  let text = readFileSync(join(folder, file), 'utf8')
  for (const [from, to] of changes) {
    if ([...text.matchAll(from)].length !== 1) throw new Error(`${from} is not once in ${file}`)
    text = text.replace(from, to)
  }
  writeFileSync(join(folder, file), text)
  const built = Bun.spawnSync([process.execPath, 'scripts/build.ts'], { cwd: folder })
  if (built.exitCode !== 0) throw new Error(`the build failed: ${built.stderr}`)
  return join(folder, 'dist', 'hopcode')
}
