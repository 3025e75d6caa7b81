// What does a redirect cost in one commit beside another?
// npm run bench -- compare main~5 main --seconds 3 --rounds 5
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { TemporaryFolder, tieToThisProcess } from '../lib/leftovers.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianRatio, type Progress } from '../lib/rounds.ts'
import type { Bar, LoadOptions, Scenario, ScenarioReport } from '../lib/scenario.ts'

const ROOT = resolve(import.meta.dir, '../..')
const LOCK_FILE = 'bun.lock'

export const compare: Scenario = {
  name: 'compare',
  question: 'What does a redirect cost in one commit beside another?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<ScenarioReport> {
  using temporary = new TemporaryFolder()
  const commits = options.refs.map((ref) => ({ ref, commit: commitOf(ref) }))
  const [before, after] = commits
  if (!before || !after) throw new Error('compare takes two commits')
  if (before.commit === after.commit) throw new Error(`${before.ref} is ${after.ref}`)
  const contenders: Contender[] = []
  for (const { ref, commit } of commits) {
    say(`building ${ref} (${commit.slice(0, 12)})`)
    const program = [await build(commit, join(temporary.path, commit))]
    const dataDir = join(temporary.path, `${commit}-data`)
    mkdirSync(dataDir)
    contenders.push({ ...(await hopcodeContender(ref, program, dataDir)), name: ref })
  }
  const measure = (contender: Contender) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const bar = (label: string, key: string): Bar => ({
    label: `${label}, ${after.ref} / ${before.ref}`,
    value: medianRatio(variants, after.ref, before.ref, key),
    ...{ unit: '×', digits: 2 },
  })
  const facts = redirectFacts({ ...options, source: false }, compare.name)
  return {
    scenario: compare.name,
    question: compare.question,
    baseline: before.ref,
    metrics: REDIRECT_METRICS,
    variants,
    bars: [
      bar('CPU per redirect', 'cpuMicros'),
      bar('redirects/s', 'requestsPerSecond'),
      bar('p99', 'openP99'),
      bar('memory', 'residentMebibytes'),
    ],
    ...facts,
    settings: { ...facts.settings, ...Object.fromEntries(commits.map((c) => [c.ref, c.commit])) },
  }
}

function commitOf(ref: string): string {
  const { stdout, exitCode } = Bun.spawnSync(
    ['git', 'rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`],
    { cwd: ROOT },
  )
  if (exitCode !== 0) throw new Error(`${ref} is no commit of this repository`)
  return String(stdout).trim()
}

/** Builds a commit in a work tree of its own, which is gone afterwards, and gives its binary. */
async function build(commit: string, folder: string): Promise<string> {
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

/** This tree's packages where the commit has the same ones; else its own. */
async function provideModules(tree: string): Promise<void> {
  const locks = [ROOT, tree].map((path) => readFileSync(join(path, LOCK_FILE), 'utf8'))
  const modules = join(ROOT, 'node_modules')
  if (locks[0] === locks[1] && existsSync(modules)) symlinkSync(modules, join(tree, 'node_modules'))
  else await runIn(tree, [process.execPath, 'install', '--frozen-lockfile'])
}

/** Throws, with what it said, if the command fails. */
async function runIn(cwd: string, command: string[]): Promise<void> {
  const child = tieToThisProcess(Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' }))
  const [out, err, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} failed:\n${out}${err}`)
}
