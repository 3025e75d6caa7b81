// What does the service cost and how fast is it, compared with simpler servers in the same run?
// npm run bench [-- <scenario> …] [--seconds 3] [--rounds 5] [--publish]
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { interrupt } from './lib/leftovers.ts'
import { describeMachine, type Machine } from './lib/machine.ts'
import { machineLine, replaceBetween, reportTable, shortTable, targetTable } from './lib/report.ts'
import { readOptions } from './lib/run-options.ts'
import { mergeRuns, type SavedRun } from './lib/saved-run.ts'
import type { ScenarioReport } from './lib/scenario.ts'
import { compare } from './load/compare.ts'
import { growth } from './load/growth.ts'
import { https } from './load/https.ts'
import { importing } from './load/import.ts'
import { outgoing } from './load/outgoing.ts'
import { proxies } from './load/proxies.ts'
import { SCENARIOS } from './load/scenarios.ts'
import { url } from './load/url.ts'

/** These run only when they are named: some need arguments, the others take minutes. */
const NAMED = [...SCENARIOS, https, compare, importing, growth, outgoing, proxies, url]

const RESULTS = join(import.meta.dir, 'results')
const PUBLISHED = join(import.meta.dir, '../docs/benchmarks.md')
const SCALING = join(import.meta.dir, '../docs/scaling.md')
/** Their whole tables are in `SCALING`. */
const OF_SCALING = [growth.name, proxies.name]

/** Ctrl-C in a terminal arrives twice: from the terminal, and from npm. */
const ECHO_MS = 1000
let interruptedAt: number | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (interruptedAt === undefined) void interrupt()
    else if (performance.now() - interruptedAt > ECHO_MS) process.exit(1)
    interruptedAt ??= performance.now()
  })
}

const { load, names, merge, isPublished } = readOptions(NAMED.map(({ name }) => name))
if (merge.length > 0) mergeAndExit()
const scenarios = names.length === 0 ? SCENARIOS : NAMED.filter(({ name }) => names.includes(name))

const machine = describeMachine()
say(machineLine([machine]))
if (machine.load > 0.5) say('The machine is busy: expect wide ranges.')

const startedAt = performance.now()
const reports: ScenarioReport[] = []
const failures: { name: string; reason: string }[] = []

// A scenario that finds something wrong reports nothing; the others still run.
for (const [at, { name, question, run }] of scenarios.entries()) {
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  say(`\n[${at + 1} of ${scenarios.length}, after ${seconds} s] ${name}: ${question}`)
  try {
    const report = { scenario: name, question, ...(await run(load, (line) => say(`  ${line}`))) }
    reports.push(report)
    console.log(`\n## ${name}\n\n${reportTable(report)}\n`)
  } catch (error) {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    failures.push({ name, reason })
    say(`FAILED ${name}: ${reason}`)
  }
}
if (reports.some(({ summary }) => summary.length > 0))
  console.log(`\n## Targets\n\n${targetTable(reports)}\n`)
save()
if (isPublished && failures.length === 0) publish([machine], reports)
for (const { name, reason } of failures) say(`\nFAILED ${name}: ${reason}`)
process.exit(failures.length === 0 ? 0 : 1)

function save(): void {
  mkdirSync(RESULTS, { recursive: true })
  const stamp = machine.startedAt.slice(0, 19).replaceAll(':', '-')
  const file = join(RESULTS, `${stamp}.json`)
  // Without the key and the token of a deployment.
  const { deployment: _, ...options } = load
  const run: SavedRun = { machine, options, reports, failures }
  writeFileSync(file, `${JSON.stringify(run)}\n`)
  say(`\nWritten: ${file}`)
}

/** Prints the medians of saved runs, and writes docs/benchmarks.md if --publish is given. */
function mergeAndExit(): never {
  const runs = merge.map((file) => JSON.parse(readFileSync(file, 'utf8')) as SavedRun)
  const merged = mergeRuns(runs)
  const machines = runs.map((run) => run.machine)
  console.log(`${machineLine(machines)}\n\n${targetTable(merged)}`)
  for (const report of merged) console.log(`\n## ${report.scenario}\n\n${reportTable(report)}`)
  if (isPublished) publish(machines, merged)
  process.exit(0)
}

/**
 * Writes the table of docs/benchmarks.md, if every scenario has run, and the tables of
 * docs/scaling.md whose scenario has run.
 */
function publish(machines: readonly Machine[], all: readonly ScenarioReport[]): void {
  for (const report of all.filter(({ scenario }) => OF_SCALING.includes(scenario))) {
    const table = `${reportTable(report)}\n\n${machineLine(machines)}.`
    writeFileSync(SCALING, replaceBetween(readFileSync(SCALING, 'utf8'), report.scenario, table))
  }
  const isComplete = SCENARIOS.every(({ name }) => all.some(({ scenario }) => scenario === name))
  if (!isComplete) return
  const table = `${shortTable(all)}\n\n${machineLine(machines)}.`
  writeFileSync(PUBLISHED, replaceBetween(readFileSync(PUBLISHED, 'utf8'), 'speed', table))
}

/** Progress goes to standard error, so that standard output is the tables alone. */
function say(line: string): void {
  console.error(line)
}
