import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { tieToThisProcess } from './leftovers.ts'
import type { MillionFolder } from './million.ts'

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
  mkdirSync(folder)
  const binary = join(folder, 'hopcode')
  await inTree(commit, folder, async (tree) => {
    await runIn(tree, [process.execPath, 'scripts/build.ts'])
    await runIn(tree, ['mv', join('dist', 'hopcode'), binary])
  })
  return binary
}

const PRINT_MILLION =
  "import { millionFolder } from './bench/lib/million.ts'\n" +
  'console.log(JSON.stringify(millionFolder(() => {})))'

/** The million links in the schema of a commit, created by its own code. `folder` must exist. */
export async function millionOf(commit: string, folder: string): Promise<MillionFolder> {
  const create = (tree: string) => runIn(tree, [process.execPath, '-e', PRINT_MILLION])
  return JSON.parse(await inTree(commit, folder, create)) as MillionFolder
}

/** Calls `use` with a work tree of the commit in `folder`, and removes the tree afterwards. */
async function inTree<Result>(
  commit: string,
  folder: string,
  use: (tree: string) => Promise<Result>,
): Promise<Result> {
  const tree = join(folder, 'tree')
  await runIn(ROOT, ['git', 'worktree', 'add', '--detach', tree, commit])
  try {
    await provideModules(tree)
    return await use(tree)
  } finally {
    await runIn(ROOT, ['git', 'worktree', 'remove', '--force', tree])
  }
}

/** Links this tree's packages if the commit has the same lock file; else installs its own. */
async function provideModules(tree: string): Promise<void> {
  const locks = [ROOT, tree].map((path) => readFileSync(join(path, LOCK_FILE), 'utf8'))
  const modules = join(ROOT, 'node_modules')
  if (locks[0] === locks[1] && existsSync(modules)) symlinkSync(modules, join(tree, 'node_modules'))
  else await runIn(tree, [process.execPath, 'install', '--frozen-lockfile'])
}

/** Returns what the command prints. Throws with all its output if it fails. */
async function runIn(cwd: string, command: string[]): Promise<string> {
  const child = tieToThisProcess(Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' }))
  const [out, err, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} failed:\n${out}${err}`)
  return out
}
