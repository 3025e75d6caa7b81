import { parseArgs } from 'node:util'
import type { LoadOptions } from './scenario.ts'

export interface RunOptions {
  load: LoadOptions
  /** Scenarios; none = all, in their short form. */
  names: readonly string[]
  /** Result files to merge instead of running anything. */
  merge: readonly string[]
  /** Write the tables into the README. */
  readme: boolean
}

export class UsageError extends Error {}

/** Defaults for a run of everything, and for a run of named benches. */
const SHORT = { seconds: '2', rounds: '2' }
const NAMED = { seconds: '3', rounds: '5' }

/** Reads the command line of bench/run.ts. Throws UsageError. */
export function readOptions(args: string[]): RunOptions {
  const { values, positionals } = parse(args)
  if (positionals[0] === 'merge') return mergeOptions(positionals.slice(1), values.readme)
  // After `compare`: two commits, then scenarios.
  const isComparison = positionals[0] === 'compare'
  const names = isComparison ? ['compare'] : positionals
  const refs = isComparison ? positionals.slice(1, 3) : []
  if (isComparison && refs.length !== 2) {
    throw new UsageError('compare takes two commits: npm run bench -- compare main~5 main')
  }
  const defaults = names.length === 0 ? SHORT : NAMED
  const wholeNumber = (name: NumberName, least: number, most: number): number => {
    const number = Number(values[name] ?? { ...DEFAULTS, ...defaults }[name])
    if (Number.isInteger(number) && number >= least && number <= most) return number
    throw new UsageError(`--${name} must be a whole number from ${least} to ${most}`)
  }
  const load: LoadOptions = {
    seconds: wholeNumber('seconds', 1, 300),
    rounds: wholeNumber('rounds', 1, 100),
    warmUp: wholeNumber('warm-up', 0, 60),
    connections: wholeNumber('connections', 1, 1000),
    rate: wholeNumber('rate', 1, 100_000),
    source: values.source,
    ...(values.redirects !== undefined && { redirects: wholeNumber('redirects', 1, 1000) }),
    refs,
    compared: isComparison ? positionals.slice(3) : [],
  }
  return { load, names, merge: [], readme: values.readme }
}

/** Fewer runs are not enough for a published figure. */
const MERGED_LEAST = 3

function mergeOptions(merge: readonly string[], readme: boolean): RunOptions {
  if (merge.length < MERGED_LEAST) {
    throw new UsageError(`merge takes ${MERGED_LEAST} or more files of bench/results/`)
  }
  return { ...readOptions([]), merge, readme }
}

const DEFAULTS = { 'warm-up': '1', connections: '64', rate: '5000', redirects: '' }
type NumberName = keyof typeof DEFAULTS | keyof typeof NAMED

function parse(args: string[]) {
  const number = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        seconds: number,
        rounds: number,
        'warm-up': number,
        connections: number,
        rate: number,
        redirects: number,
        source: flag,
        readme: flag,
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
