// What does one commit cost, compared with another?
// npm run bench -- compare main~5 main --rounds 5
// npm run bench -- compare main~5 main [create bulk list mixed …] --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { builtCommit, commitOf, millionOf } from '../lib/built-commit.ts'
import { measureVariants, type Plan } from '../lib/figures.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import type { MillionFolder } from '../lib/million.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
  targetsFor,
} from '../lib/redirect-round.ts'
import { alternate, type Figures, type Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { addTurns, BATCH_TURN_METRICS, TURN_METRICS, TURN_NOTE } from '../lib/short-turns.ts'
import { emptyWorkspace } from '../lib/workspace.ts'
import { COMPARED_ROWS, importing } from './import.ts'
import { SCENARIOS } from './scenarios.ts'

export const compare: Scenario = {
  name: 'compare',
  question: 'What does one commit cost, compared with another?',
  run,
}

interface Build {
  /** As the user named the commit. */
  name: string
  commit: string
  program: string[]
  million: () => Promise<MillionFolder>
}

type Builds = readonly [before: Build, after: Build]

/** Warm redirects, or each scenario that is named, with both commits in turn. */
async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using temporary = new TemporaryFolder()
  const scenarios = [...SCENARIOS, importing].filter(({ name }) => options.compared.includes(name))
  const [before = '', after = ''] = options.refs
  if (commitOf(before) === commitOf(after)) throw new Error(`${before} is ${after}`)
  const build = async (name: string): Promise<Build> => {
    const commit = commitOf(name)
    say(`building ${name} (${commit.slice(0, 12)})`)
    const folder = join(temporary.path, commit)
    const program = [await builtCommit(commit, folder)]
    let million: Promise<MillionFolder> | undefined
    return { name, commit, program, million: () => (million ??= millionOf(commit, folder)) }
  }
  const builds: Builds = [await build(before), await build(after)]
  const isPlain = scenarios.length === 0
  const chosen = isPlain ? [warmRedirects] : scenarios
  const findings = await compareScenarios(builds, chosen, options, say)
  if (isPlain) await addPlainTurns(builds, temporary, { options, findings, say })
  const commits = Object.fromEntries(builds.map(({ name, commit }) => [name, commit]))
  return { ...findings, settings: { ...findings.settings, ...commits } }
}

/** Adds figures of both commits while both run: they differ less than two minutes of a machine. */
async function addPlainTurns(
  builds: Builds,
  temporary: TemporaryFolder,
  { options, findings, say }: { options: LoadOptions; findings: Findings; say: Progress },
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const services = []
  for (const { name, commit, program } of builds) {
    const dataDir = join(temporary.path, `turns-${commit}`)
    mkdirSync(dataDir)
    const contender = await hopcodeContender(name, program, dataDir)
    const server = stack.use(await startServer(contender.launch))
    services.push({ name, server, targets: targetsFor(contender) })
  }
  const { variants } = findings
  await addTurns(services, options, { variants, say, isBatched: true })
  findings.metrics.push(...TURN_METRICS, ...BATCH_TURN_METRICS)
  findings.notes.push(TURN_NOTE)
}

/** Redirects of cached links, by the service alone. */
const warmRedirects: Scenario = {
  name: 'redirects',
  question: 'What does a redirect of a cached link cost?',
  run: async (options, say) => {
    using workspace = await emptyWorkspace(options)
    const contender = await hopcodeContender('warm', workspace.program, workspace.dataDir)
    const plan: Plan<Contender> = {
      variants: [contender],
      measure: () => measureRedirects(contender, options),
      metrics: REDIRECT_METRICS,
      figures: {},
      ...redirectFacts(options),
    }
    return await measureVariants(plan, options, say)
  },
}

/**
 * Each round runs a scenario once with either commit, each with a million links in its own schema.
 * Variants without the service show the noise.
 */
async function compareScenarios(
  builds: Builds,
  scenarios: readonly Scenario[],
  options: LoadOptions,
  say: Progress,
): Promise<Findings> {
  const metrics = new Map<string, Metric>()
  const rates = new Map<Scenario, number>()
  const measureScenario = async (
    scenario: Scenario,
    { program, million }: Build,
  ): Promise<Figures> => {
    say(scenario.name)
    const ratePerSecond = rates.get(scenario)
    const single = {
      ...options,
      rounds: 1,
      program,
      million,
      rows: COMPARED_ROWS,
      ...(ratePerSecond && { ratePerSecond }),
    }
    const findings = await scenario.run(single, (line) => say(`  ${line}`))
    const rate = findings.settings.ratePerSecond
    if (typeof rate === 'number') rates.set(scenario, rate)
    const figures: Figures = {}
    for (const variant of findings.variants) {
      for (const metric of findings.metrics) {
        const value = variant.rounds[0]?.[metric.key] ?? Number.NaN
        if (Number.isNaN(value)) continue
        const key = `${scenario.name}, ${variant.name}: ${metric.label}`
        metrics.set(key, { ...metric, key, label: key, ratio: true })
        figures[key] = value
      }
    }
    return figures
  }
  const measure = async (build: Build) => {
    const parts: Figures[] = []
    for (const scenario of scenarios) parts.push(await measureScenario(scenario, build))
    return { figures: Object.assign({}, ...parts) as Figures }
  }
  const variants = await alternate(builds, options.rounds, measure, say)
  const { seconds, rounds, warmUp, connections } = options
  return {
    baseline: builds[0].name,
    settings: { seconds, rounds, warmUp, connections },
    metrics: [...metrics.values()],
    variants,
    summary: [],
    notes: ['Each round runs every scenario once with each commit.'],
  }
}
