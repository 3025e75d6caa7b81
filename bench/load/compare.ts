// What does a redirect cost in one commit, compared with another?
// npm run bench -- compare main~5 main --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { builtCommit, commitOf } from '../lib/built-commit.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianRatio, type Progress } from '../lib/rounds.ts'
import type { Bar, Findings, LoadOptions, Scenario } from '../lib/scenario.ts'

export const compare: Scenario = {
  name: 'compare',
  question: 'What does a redirect cost in one commit, compared with another?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using temporary = new TemporaryFolder()
  const commits = options.refs.map((ref) => ({ ref, commit: commitOf(ref) }))
  const [before, after] = commits
  if (!before || !after) throw new Error('compare takes two commits')
  if (before.commit === after.commit) throw new Error(`${before.ref} is ${after.ref}`)
  const contenders: Contender[] = []
  for (const { ref, commit } of commits) {
    say(`building ${ref} (${commit.slice(0, 12)})`)
    const program = [await builtCommit(commit, join(temporary.path, commit))]
    const dataDir = join(temporary.path, `${commit}-data`)
    mkdirSync(dataDir)
    contenders.push({ ...(await hopcodeContender(ref, program, dataDir)), name: ref })
  }
  const measure = (contender: Contender) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const bar = (label: string, key: string): Bar => ({
    label: `${label}, ${after.ref} / ${before.ref}`,
    value: medianRatio(variants, after.ref, before.ref, key),
    unit: '×',
    digits: 2,
  })
  const facts = redirectFacts({ ...options, source: false }, compare.name)
  return {
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
