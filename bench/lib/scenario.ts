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
  /** Millions of redirects that `soak` serves; absent: as many as 40 seconds give. */
  redirects?: number
  /** The commits that `compare` compares. */
  refs: readonly string[]
}

/** A figure that is judged, or one worth a row among those that are. */
export interface Bar {
  /** What is measured, beside the scenario's name. */
  label: string
  /** NaN where this run was too short to tell. */
  value: number
  /** `×` for a ratio, else the unit with a space before it. */
  unit: string
  digits: number
  /** It belongs on the front page. */
  isMain?: boolean
  /** Absent: the figure is shown and not judged. */
  demand?: { sense: '≤' | '≥'; bar: number; stretch?: number }
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
  /** The variant that the others are compared with; absent where nothing is compared. */
  baseline?: string
  settings: Record<string, string | number>
  metrics: Metric[]
  variants: VariantResult[]
  bars: Bar[]
  /** The title of the latency plot; absent where the latencies are not worth one. */
  plot?: string
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
