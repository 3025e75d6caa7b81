import type { Progress, VariantResult } from './rounds.ts'

/** What a person may choose on the command line. */
export interface LoadOptions {
  /** Of each timed part of a round. */
  seconds: number
  rounds: number
  /** Untimed load at the start of each round, in seconds. */
  warmUp: number
  /** Open connections of the closed loop; the open loop takes as many. */
  connections: number
  /** Arrivals of the open loop, requests per second. */
  rate: number
  /** Run the tree with Bun instead of the compiled binary. */
  source: boolean
}

/** One line of a scenario's table. */
export interface Metric {
  key: string
  label: string
  digits: number
  /** Whether it is compared with the baseline. */
  ratio: boolean
}

export interface ScenarioReport {
  scenario: string
  question: string
  /** The variant that the others are compared with. */
  baseline: string
  settings: Record<string, string | number>
  metrics: Metric[]
  variants: VariantResult[]
  /** What a reader must know to read the figures, one sentence each. */
  notes: string[]
}

/** One load scenario: bench/load/<name>.ts exports one, and bench/run.ts lists it. */
export interface Scenario {
  name: string
  question: string
  /** Throws where a result is wrong: nothing is reported then. */
  run(options: LoadOptions, say: Progress): Promise<ScenarioReport>
}
