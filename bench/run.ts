// What does the service cost and how fast is it, beside simpler servers in the same run?
// npm run bench [-- <scenario or micro bench> …] [--seconds 3] [--rounds 5] [--readme]
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { tieToThisProcess } from './lib/leftovers.ts'
import { describeMachine } from './lib/machine.ts'
import { latencyPlot } from './lib/plot.ts'
import { machineLine, replaceFigures, reportTable } from './lib/report.ts'
import type { LoadOptions, Scenario, ScenarioReport } from './lib/scenario.ts'
import { redirect } from './load/redirect.ts'

const SCENARIOS: readonly Scenario[] = [redirect]

const RESULTS = join(import.meta.dir, 'results')
const MICRO = join(import.meta.dir, 'micro')
const README = join(import.meta.dir, 'README.md')
const MICRO_DEADLINE_MS = 120_000

interface MicroReport {
  file: string
  /** Everything that it printed. */
  output: string
}

const { values, positionals } = readArguments()

const options: LoadOptions = {
  seconds: wholeNumber('seconds', 1, 300),
  rounds: wholeNumber('rounds', 1, 100),
  warmUp: wholeNumber('warm-up', 0, 60),
  connections: wholeNumber('connections', 1, 1000),
  rate: wholeNumber('rate', 1, 100_000),
  source: values.source,
}

// Ending through `exit` takes servers and generators along.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const microFiles = existsSync(MICRO)
  ? readdirSync(MICRO)
      .filter((file) => file.endsWith('.bench.ts'))
      .sort()
  : []
const known = [...SCENARIOS.map(({ name }) => name), ...microFiles.map(microName), 'micro']
const unknown = positionals.filter((name) => !known.includes(name))
if (unknown.length > 0)
  fail(`no bench is named ${unknown.join(', ')}; there are ${known.join(', ')}`)

const machine = describeMachine()
say(machineLine(machine))
if (machine.load > 0.5) say('The machine is busy: expect wide ranges.')

const reports: ScenarioReport[] = []
for (const scenario of SCENARIOS.filter(({ name }) => isChosen(name))) {
  say(`\n${scenario.name}: ${scenario.question}`)
  const report = await scenario.run(options, (line) => say(`  ${line}`))
  reports.push(report)
  console.log(`\n## ${report.scenario}\n\n${reportTable(report)}\n`)
}

const micro: MicroReport[] = []
for (const file of microFiles.filter((name) => isChosen(microName(name)) || isChosen('micro'))) {
  say(`\nmicro/${file}`)
  micro.push({ file, output: await runMicro(file) })
}

mkdirSync(RESULTS, { recursive: true })
const stamp = machine.startedAt.slice(0, 19).replaceAll(':', '-')
const resultFile = join(RESULTS, `${stamp}.json`)
writeFileSync(resultFile, `${JSON.stringify({ machine, reports, micro })}\n`)
for (const report of reports) {
  const title = `${report.scenario}: latency at ${report.settings.rate} requests/s`
  writeFileSync(join(RESULTS, plotName(report)), latencyPlot(title, report.variants))
}
if (values.readme) {
  writeFileSync(README, replaceFigures(readFileSync(README, 'utf8'), figuresForReadme()))
}
say(`\nWritten: ${resultFile}`)

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: 'string', default: '3' },
        rounds: { type: 'string', default: '5' },
        'warm-up': { type: 'string', default: '1' },
        connections: { type: 'string', default: '64' },
        rate: { type: 'string', default: '5000' },
        source: { type: 'boolean', default: false },
        readme: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

function isChosen(name: string): boolean {
  return positionals.length === 0 || positionals.includes(name)
}

function microName(file: string): string {
  return basename(file, '.bench.ts')
}

/** Runs one micro bench in its own process and shows what it prints. Throws if it fails. */
async function runMicro(file: string): Promise<string> {
  const child = Bun.spawn([process.execPath, join(MICRO, file)], {
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: MICRO_DEADLINE_MS,
  })
  tieToThisProcess(child)
  const output = await child.stdout.text()
  const exitCode = await child.exited
  console.log(output.trimEnd())
  if (exitCode !== 0) throw new Error(`micro/${file} failed with ${exitCode}`)
  return output
}

function plotName(report: ScenarioReport): string {
  return `${stamp}-${report.scenario}.svg`
}

function figuresForReadme(): string {
  const tables = reports.map((report) =>
    [
      `### ${report.scenario}`,
      reportTable(report),
      `![Latency of ${report.scenario} by percentile](results/${plotName(report)})`,
    ].join('\n\n'),
  )
  return [machineLine(machine), ...tables].join('\n\n')
}

function wholeNumber(name: keyof typeof values, least: number, most: number): number {
  const number = Number(values[name])
  if (Number.isInteger(number) && number >= least && number <= most) return number
  return fail(`--${name} must be a whole number from ${least} to ${most}`)
}

/** Progress goes to standard error, so that standard output is the tables alone. */
function say(line: string): void {
  console.error(line)
}

function fail(reason: string): never {
  console.error(`bench: ${reason}`)
  process.exit(2)
}
