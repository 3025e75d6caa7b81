import { Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { LoadOptions } from './scenario.ts'

export interface RunOptions {
  load: LoadOptions
  /** Scenarios; none = all, in their short form. */
  names: readonly string[]
  /** Result files to merge instead of running anything. */
  merge: readonly string[]
  /** Write the table of docs/benchmarks.md. */
  isPublished: boolean
}

/** Fewer runs are not enough for a published figure. */
const MERGED_LEAST = 3

const wholeNumber = (least: number, most: number) => (text: string) => {
  const number = Number(text)
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
}

/** Reads the command line of bench/run.ts. Exits with a message if it is wrong. */
export function readOptions(scenarios: readonly string[]): RunOptions {
  const command = new Command('bench')
    .argument('[names...]', 'scenarios; `compare A B [name …]`; `merge A.json B.json C.json`')
    .option('--seconds <n>', 'length of each timed part of a round', wholeNumber(1, 300))
    .option('--rounds <n>', 'rounds of each variant', wholeNumber(1, 100))
    .option('--warm-up <s>', 'untimed load at the start of each round', wholeNumber(0, 60), 1)
    .option('--connections <n>', 'connections of the load generator', wholeNumber(1, 1000), 64)
    .option('--rate <n>', 'requests per second of the open loop', wholeNumber(1, 100_000), 5000)
    .option('--redirects <n>', 'millions of redirects of soak', wholeNumber(1, 1000))
    .option('--source', 'run the source tree instead of the compiled binary', false)
    .option('--publish', 'write the table of docs/benchmarks.md', false)
    .parse()
  const { publish: isPublished, seconds, rounds, redirects, ...others } = command.opts()
  const [first, ...rest] = command.args
  const names = first === 'merge' ? [] : first === 'compare' ? ['compare'] : command.args
  const merge = first === 'merge' ? rest : []
  const refs = first === 'compare' ? rest.slice(0, 2) : []
  const compared = first === 'compare' ? rest.slice(2) : []
  const unknown = [...names, ...compared].find((name) => !scenarios.includes(name))
  if (unknown !== undefined) {
    command.error(`no bench is named ${unknown}; there are ${scenarios.join(', ')}`)
  }
  if (first === 'compare' && refs.length < 2) {
    command.error('compare takes two commits: npm run bench -- compare main~5 main')
  }
  if (first === 'merge' && merge.length < MERGED_LEAST) {
    command.error(`merge takes ${MERGED_LEAST} or more files of bench/results/`)
  }
  const load: LoadOptions = {
    ...others,
    // A run of everything is shorter.
    seconds: seconds ?? (names.length === 0 ? 2 : 3),
    rounds: rounds ?? (names.length === 0 ? 2 : 5),
    ...(redirects !== undefined && { redirects }),
    refs,
    compared,
  }
  return { load, names, merge, isPublished }
}
