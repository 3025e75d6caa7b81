// How long does one request in the sliding window take, compared with a Map<string, number[]>?
// bun bench/micro/window.bench.ts

import { SlidingWindow } from '../../src/hot/sliding-window.ts'
import { WINDOW_MS } from '../../src/hot/window-shard.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const ROUNDS = 3
const WARM_UP_TAKES = 1_000_000
const TAKES = 2_000_000
const KEYS_MAX = 393_216

interface Case {
  name: string
  callers: number
  budget: number
  /** Requests in a minute of simulated time. */
  perMinute: number
  /** Each request comes from a new caller, instead of a random known one. */
  isFlood?: boolean
}

const CASES: readonly Case[] = [
  { name: '1,000 callers, under their budget', callers: 1000, budget: 3000, perMinute: 1_000_000 },
  { name: '1,000 callers, mostly refused', callers: 1000, budget: 60, perMinute: 1_000_000 },
  { name: '200,000 callers at random', callers: 200_000, budget: 300, perMinute: 3_000_000 },
  { name: 'newcomers only', callers: 1, budget: 300, perMinute: 300_000, isFlood: true },
]

type Take = (caller: number, budget: number, nowMs: number) => boolean

/** Callers look like IPv4 addresses. */
const VARIANTS = {
  hopcode: (): Take => {
    const window = new SlidingWindow(SlidingWindow.allocate({ keysMax: KEYS_MAX }))
    return (caller, budget, nowMs) => window.take(0, 0x0a00_0000 + caller, budget, nowMs).allowed
  },
  map: (): Take => {
    const log = new Map<string, number[]>()
    let nextSweepMs = WINDOW_MS
    return (caller, budget, nowMs) => {
      if (nowMs >= nextSweepMs) {
        nextSweepMs = nowMs + WINDOW_MS
        for (const [key, times] of log) {
          if ((times.at(-1) ?? 0) <= nowMs - WINDOW_MS) log.delete(key)
        }
      }
      const key = `10.${caller >> 16}.${(caller >> 8) & 255}.${caller & 255}`
      let times = log.get(key)
      if (!times) {
        times = []
        log.set(key, times)
      }
      while (times.length > 0 && (times[0] as number) <= nowMs - WINDOW_MS) times.shift()
      if (times.length >= budget) return false
      times.push(nowMs)
      return true
    }
  },
}
type Variant = keyof typeof VARIANTS
const NAMES: readonly Variant[] = ['hopcode', 'map']

interface Timing {
  meanNs: number
  /** Requests timed one by one, including the cost of reading the clock. */
  p50Ns: number
  p99Ns: number
  passed: number
}

/** The same callers and times for every variant. Allocates nothing. */
class Requests {
  caller = 0
  nowMs = 0
  readonly #case: Case
  #random = 0x9e3779b9
  #step = 0

  constructor(steps: Case) {
    this.#case = steps
  }

  next(): void {
    const { callers, perMinute, isFlood } = this.#case
    this.#random ^= this.#random << 13
    this.#random ^= this.#random >>> 17
    this.#random ^= this.#random << 5
    this.nowMs = Math.floor((this.#step++ * WINDOW_MS) / perMinute)
    this.caller = isFlood ? this.#step : (this.#random >>> 0) % callers
  }
}

const [variant, index] = process.argv.slice(2)
if (variant === 'hopcode' || variant === 'map') {
  console.log(JSON.stringify(time(variant, CASES[Number(index)] as Case)))
} else {
  verify()
  await compare()
}

/** All variants must pass and refuse the same requests. */
function verify(): void {
  const takes = NAMES.map((name) => VARIANTS[name]())
  const steps = { name: 'verify', callers: 500, budget: 20, perMinute: 20_000 }
  const requests = new Requests(steps)
  for (let i = 0; i < 200_000; i++) {
    requests.next()
    const { caller, nowMs } = requests
    const [ours, theirs] = takes.map((take) => take(caller, steps.budget, nowMs))
    if (ours !== theirs) throw new Error(`request ${i} of caller ${caller} is judged differently`)
  }
}

/** Runs each variant in a separate process, in turn, once per round. */
async function compare(): Promise<void> {
  printMachine()
  console.log('| case | mean ns | p50 ns | p99 ns | map mean ns | map p50 ns | times faster |')
  console.log('| :--- | ---: | ---: | ---: | ---: | ---: | ---: |')
  for (const [index, { name }] of CASES.entries()) {
    const file = import.meta.path
    const timings = await timeInTurn<Variant, Timing>(file, NAMES, ROUNDS, () => [index])
    if (timings.hopcode[0]?.passed !== timings.map[0]?.passed) throw new Error(`${name} differs`)
    const figure = (variant: Variant, key: keyof Timing) =>
      median(timings[variant].map((timing) => timing[key]))
    const ours = figure('hopcode', 'meanNs')
    const theirs = figure('map', 'meanNs')
    const row = [ours, figure('hopcode', 'p50Ns'), figure('hopcode', 'p99Ns')]
    row.push(theirs, figure('map', 'p50Ns'))
    const cells = row.map((ns) => ns.toFixed(0))
    console.log(`| ${name} | ${cells.join(' | ')} | ${(theirs / ours).toFixed(1)} |`)
  }
}

function time(variant: Variant, steps: Case): Timing {
  const take = VARIANTS[variant]()
  const requests = new Requests(steps)
  let passed = 0
  const run = (takes: number) => {
    for (let i = 0; i < takes; i++) {
      requests.next()
      if (take(requests.caller, steps.budget, requests.nowMs)) passed++
    }
  }
  run(WARM_UP_TAKES)
  const start = Bun.nanoseconds()
  run(TAKES)
  const meanNs = (Bun.nanoseconds() - start) / TAKES
  const samples = new Float64Array(TAKES / 4)
  for (let i = 0; i < samples.length; i++) {
    requests.next()
    const before = Bun.nanoseconds()
    if (take(requests.caller, steps.budget, requests.nowMs)) passed++
    samples[i] = Bun.nanoseconds() - before
  }
  samples.sort()
  const at = (quantile: number) => samples[Math.floor(samples.length * quantile)] as number
  return { meanNs, p50Ns: at(0.5), p99Ns: at(0.99), passed }
}
