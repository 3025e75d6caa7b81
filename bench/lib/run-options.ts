import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { ADAPTERS } from './adapters.ts'
import type { DeploymentOptions } from './deployment.ts'
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

function secondsOf(text: string): number {
  const seconds = Number(text)
  if (seconds >= 0.1 && seconds <= 300) return seconds
  throw new InvalidArgumentError('It must be a number from 0.1 to 300.')
}

function millionsOf(text: string): number[] {
  const millions = text.split(',').map(Number)
  const isRight = (one: number) => one >= 0.01 && one <= 20 && Number.isInteger(one * 100)
  if (millions.every(isRight)) return millions
  throw new InvalidArgumentError('It must be a list like 0.1,1,10.')
}

const SERVICE = new Option('--service <S>', 'what the URL is of')
  .choices(Object.keys(ADAPTERS))
  .default('hopcode')

function deploymentOf(
  {
    url,
    key,
    token,
    ca,
    links,
    service,
  }: { [Name in keyof DeploymentOptions]?: DeploymentOptions[Name] | undefined },
  refuse: (message: string) => never,
): DeploymentOptions | undefined {
  if (url === undefined) return undefined
  if (!/^https?:\/\/[^/]+\/?$/.test(url)) refuse('--url is like https://go.example, without a path')
  if (key === undefined) refuse('--url needs --key, an API key of the service')
  return {
    url,
    key: key ?? '',
    service: service ?? 'hopcode',
    links: links ?? 0,
    ...(token !== undefined && { token }),
    ...(ca !== undefined && { ca }),
  }
}

/** Reads the command line of bench/run.ts. Exits with a message if it is wrong. */
export function readOptions(scenarios: readonly string[]): RunOptions {
  const command = new Command('bench')
    .argument('[names...]', 'scenarios; `compare A B [name …]`; `merge A.json B.json C.json`')
    .option('--seconds <n>', 'length of each timed part of a round', secondsOf)
    .option('--rounds <n>', 'rounds of each variant', wholeNumber(1, 100))
    .option('--warm-up <s>', 'untimed load at the start of each round', wholeNumber(0, 60), 1)
    .option('--connections <n>', 'connections of the load generator', wholeNumber(1, 1000), 64)
    .option('--rate <n>', 'requests per second of the open loop', wholeNumber(1, 100_000), 5000)
    .option('--redirects <n>', 'millions of redirects of soak', wholeNumber(1, 1000))
    .option('--millions <list>', 'millions of links of growth', millionsOf, [0.1, 1])
    .option('--url <U>', 'load an own deployment instead; needs an API key')
    .option('--key <K>', 'its API key; default: HOPCODE_API_KEY')
    .option('--token <T>', 'what `hopcode bench-token` prints on a host with a public address')
    .option('--ca <FILE>', 'certificate of a private authority that signed that of the host')
    .option('--links <n>', 'links of the run', wholeNumber(2, 100_000), 1000)
    .addOption(SERVICE)
    .option('--https', 'redirect: over https, beside nginx', false)
    .option('--source', 'run the source tree instead of the compiled binary', false)
    .option('--publish', 'write the table of docs/benchmarks.md', false)
    .parse()
  const options = command.opts()
  const { publish: isPublished, seconds, rounds, redirects } = options
  const { warmUp, connections, rate, source, millions } = options
  // Not as the default of the option: the help would show it.
  const key = options.key ?? process.env.HOPCODE_API_KEY
  const deployment = deploymentOf({ ...options, key }, (message) => command.error(message))
  const words = deployment ? ['url'] : command.args
  const [first, ...rest] = words
  const named = first === 'merge' ? [] : first === 'compare' ? ['compare'] : words
  const names = options.https ? named.map((name) => (name === 'redirect' ? 'https' : name)) : named
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
    warmUp,
    connections,
    rate,
    source,
    millions,
    ...(deployment && { deployment }),
    // A run of everything is shorter.
    seconds: seconds ?? (names.length === 0 ? 2 : 3),
    rounds: rounds ?? (names.length === 0 ? 2 : 5),
    ...(redirects !== undefined && { redirects }),
    refs,
    compared,
  }
  return { load, names, merge, isPublished }
}
