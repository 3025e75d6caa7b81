import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { tieToThisProcess } from './leftovers.ts'

const ROOT = resolve(import.meta.dir, '../..')
const LOCK_FILE = 'bun.lock'

/** The full name of a commit. Throws if there is none. */
export function commitOf(ref: string): string {
  const { stdout, exitCode } = Bun.spawnSync(
    ['git', 'rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`],
    { cwd: ROOT },
  )
  if (exitCode !== 0) throw new Error(`${ref} is no commit of this repository`)
  return String(stdout).trim()
}

/**
 * Builds a commit in a temporary work tree. `folder` must not exist yet. Returns the path of the
 * binary in it.
 */
export async function builtCommit(commit: string, folder: string): Promise<string> {
  const tree = join(folder, 'tree')
  mkdirSync(folder)
  await runIn(ROOT, ['git', 'worktree', 'add', '--detach', tree, commit])
  const binary = join(folder, 'hopcode')
  try {
    await provideModules(tree)
    await runIn(tree, [process.execPath, 'scripts/build.ts'])
    await runIn(tree, ['mv', join('dist', 'hopcode'), binary])
  } finally {
    await runIn(ROOT, ['git', 'worktree', 'remove', '--force', tree])
  }
  return binary
}

/** Links this tree's packages if the commit has the same lock file; else installs its own. */
async function provideModules(tree: string): Promise<void> {
  const locks = [ROOT, tree].map((path) => readFileSync(join(path, LOCK_FILE), 'utf8'))
  const modules = join(ROOT, 'node_modules')
  if (locks[0] === locks[1] && existsSync(modules)) symlinkSync(modules, join(tree, 'node_modules'))
  else await runIn(tree, [process.execPath, 'install', '--frozen-lockfile'])
}

/** Throws with the output if the command fails. */
async function runIn(cwd: string, command: string[]): Promise<void> {
  const child = tieToThisProcess(Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' }))
  const [out, err, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} failed:\n${out}${err}`)
}
