import type { DeploymentOptions } from './deployment.ts'
import type { Progress, VariantResult } from './rounds.ts'

/** The options of the command line. */
export interface LoadOptions {
  /** Duration of each timed part of a round; at least 0.1. */
  seconds: number
  rounds: number
  /** Untimed load at the start of each round, in seconds. */
  warmUp: number
  /** Open connections of the closed loop; the open loop takes as many. */
  connections: number
  /** Arrivals of the open loop, requests per second. */
  rate: number
  /** Run the source tree with Bun instead of the compiled binary. */
  source: boolean
  /** The command of another service to measure, for `compare`. */
  program?: readonly string[]
  /** The million links for that service, in its schema. */
  million?: () => Promise<{ path: string; apiKey: string }>
  /** Millions of redirects of `soak`; absent: as many as the service answers in 40 seconds. */
  redirects?: number
  /** Millions of links of the steps of `growth`. */
  millions: readonly number[]
  /** The two commits of `compare`, and the scenarios to compare; by default redirects. */
  refs: readonly string[]
  compared: readonly string[]
  deployment?: DeploymentOptions
  /** The rate of `mixed`, for `compare`; by default 60 % of the peak that it measures. */
  ratePerSecond?: number
  /** Rows of the files of `import`, for `compare`; by default a million. */
  rows?: number
}

/** A figure of the summary; it may have a target. */
export interface SummaryFigure {
  /** What is measured, without the name of the scenario. */
  label: string
  /** NaN if this run was too short to measure it. */
  value: number
  /** Lowest and highest of several runs; then `value` is their median. */
  range?: [number, number]
  /** `×` for a ratio, else the unit with a space before it. */
  unit: string
  digits: number
  /** Shown in docs/benchmarks.md. */
  isMain?: boolean
  /** The rounds overlap, or the machine had other work: then it reaches no stretch target. */
  isUncertain?: boolean
  /** The target; absent if the figure has none. */
  target?: { sense: '≤' | '≥'; value: number; stretch?: number }
}

/** One line of a scenario's table. */
export interface Metric {
  key: string
  label: string
  digits: number
  /** Whether the table shows its ratio to the baseline. */
  ratio: boolean
}

export interface ScenarioReport {
  scenario: string
  question: string
  /** The variant that the others are compared with, if any. */
  baseline?: string
  settings: Record<string, string | number>
  metrics: Metric[]
  variants: VariantResult[]
  summary: SummaryFigure[]
  /** What a reader must know to interpret the figures. */
  notes: string[]
}

/** What a scenario reports besides its name and question. */
export type Findings = Omit<ScenarioReport, 'scenario' | 'question'>

/** One load scenario: bench/load/<name>.ts exports one, and bench/run.ts lists it. */
export interface Scenario {
  name: string
  question: string
  /** Throws if a result is wrong: then nothing is reported. */
  run(options: LoadOptions, say: Progress): Promise<Findings>
}
