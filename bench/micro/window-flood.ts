// How much memory do 20 million addresses need, and does a caller at its limit stay refused?
// bun bench/micro/window-flood.ts [keysMax]

import { SlidingWindow } from '../../src/hot/sliding-window.ts'
import { WINDOW_MS } from '../../src/hot/window-shard.ts'
import { describeMachine } from '../lib/machine.ts'
import { residentMebibytesOf } from '../lib/process-stats.ts'

const ADDRESSES = 10_000_000
const ADDED_MEBIBYTES_MAX = 64
const BUDGET = 300
const VICTIM_HIGH = 0x2001_0db8
const VICTIM_LOW = 0x0000_0001
/** The caller at its limit sends one request per this many other addresses. */
const ADDRESSES_BETWEEN = 1000

const keysMax = Number(process.argv[2] ?? 393_216)
const { processor, cores, load, bun, commit } = describeMachine()
console.log(`${cores} x ${processor}, load ${load.toFixed(2)}, bun ${bun}, commit ${commit}`)

// Compiles the hot path first: memory of the compiler must not count as memory of the flood.
warmUp()
Bun.gc(true)
const before = residentMebibytesOf(process.pid)
let highest = before
const window = new SlidingWindow(SlidingWindow.allocate({ keysMax }))
/**
 * When the caller at its limit last passed: its newest requests, as many as the budget, in a ring.
 */
const passedMs = new Float64Array(BUDGET).fill(Number.NEGATIVE_INFINITY)
let passed = 0
let requests = 0
let now = 0

console.log(
  `| ${keysMax} callers held at most | ns/take | MiB added | MiB of the window | overflowed |`,
)
console.log('| :--- | ---: | ---: | ---: | ---: |')
for (let i = 0; i < BUDGET; i++) request()
const ipv4 = (i: number) => void window.take(0, Math.imul(i, 0x9e37_79b1), BUDGET, now)
const ipv6 = (i: number) => void window.take(0x2a00_0000 + (i >>> 16), i << 16, BUDGET, now)
flood('10 million IPv4 addresses in 29 s', ipv4, 29_000)
flood('10 million IPv6 /64 networks in 29 s', ipv6, 29_000)
if (passed !== BUDGET) throw new Error('the caller at its limit got through')
flood('the same IPv6 networks over 10 minutes', ipv6, 600_000)
if (passed <= BUDGET) throw new Error('the caller at its limit was never let in again')
console.log(
  `the caller at its limit sent ${requests} requests and got the right decision each time`,
)
console.log(`added at most ${(highest - before).toFixed(1)} MiB (limit: ${ADDED_MEBIBYTES_MAX})`)
if (highest - before > ADDED_MEBIBYTES_MAX) process.exitCode = 1

function flood(name: string, take: (address: number) => void, lastsMs: number): void {
  const startMs = now
  const start = Bun.nanoseconds()
  for (let i = 0; i < ADDRESSES; i++) {
    now = startMs + Math.floor((i * lastsMs) / ADDRESSES)
    take(i)
    if (i % ADDRESSES_BETWEEN === 0) request()
    if (i % 1_000_000 === 0) highest = Math.max(highest, residentMebibytesOf(process.pid))
  }
  const ns = (Bun.nanoseconds() - start) / ADDRESSES
  const added = residentMebibytesOf(process.pid) - before
  highest = Math.max(highest, before + added)
  const cells = [ns.toFixed(0), added.toFixed(1), (window.bytes / 2 ** 20).toFixed(1)]
  console.log(`| ${name} | ${cells.join(' | ')} | ${window.overflowed} |`)
}

/** One request of the caller at its limit. It may pass if the request `BUDGET` earlier has left. */
function request(): void {
  requests++
  const mayPass = (passedMs[passed % BUDGET] as number) <= now - WINDOW_MS
  const passes = window.take(VICTIM_HIGH, VICTIM_LOW, BUDGET, now).allowed
  if (passes !== mayPass)
    throw new Error(`request ${requests} of the caller at its limit, ${now} ms`)
  if (passes) passedMs[passed++ % BUDGET] = now
}

function warmUp(): void {
  const window = new SlidingWindow(SlidingWindow.allocate({ keysMax: 1000 }))
  for (let i = 0; i < 2_000_000; i++) window.take(i >>> 12, i % 5000, BUDGET, i >> 3)
}
