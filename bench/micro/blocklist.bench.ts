// What do a million blocked hosts cost in memory, loading and lookups, compared with a Set?
// bun bench/micro/blocklist.bench.ts

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hostOf } from '../../src/blocklist/match.ts'
import { Blocklist } from '../../src/blocklist/watch.ts'
import { createLog } from '../../src/lib/log.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const ENTRIES = 1_000_000
const ROUNDS = 3
const LOOKUPS = 200_000
/** Memory that a million hosts may add to the process. */
const GROWTH_MAX_MIB = 100
/** How long freed memory may take to return to the system. */
const SETTLING_MS = 500

/** Whether a URL's host is blocked. */
type Lookup = (url: string) => boolean

const VARIANTS = {
  async hopcode(file: string): Promise<Lookup> {
    const log = createLog({ level: 'error' })
    const thread = new URL('../../src/threads/blocklist.ts', import.meta.url)
    const blocklist = await Blocklist.open({ files: [file], ownHosts: [], log, thread })
    return (url) => blocklist.isBlocked(new URL(url))
  },
  async set(file: string): Promise<Lookup> {
    const lines = readFileSync(file, 'utf8').split('\n')
    const hosts = new Set(lines.map((line) => line.slice('0.0.0.0 '.length)))
    return (url) => {
      let host = hostOf(url)
      while (!hosts.has(host)) {
        const dot = host.indexOf('.')
        if (dot < 0) return false
        host = host.slice(dot + 1)
      }
      return true
    }
  },
}
type Variant = keyof typeof VARIANTS

interface Figures {
  loadMs: number
  /** CPU time of all threads, and of the main thread. */
  loadCpuMs: number
  mainThreadMs: number
  settledMib: number
  peakMib: number
  hitNs: number
  missNs: number
  /** Parsing the URL, which is part of both kinds of lookup. */
  parseNs: number
  /** A lookup that matches, without parsing. */
  lookupNs: number
}

const [variant, file = ''] = process.argv.slice(2)
if (variant === 'hopcode' || variant === 'set') {
  console.log(JSON.stringify(await measure(VARIANTS[variant], file)))
  process.exit()
}
await compare()

async function compare(): Promise<void> {
  printMachine()
  const folder = mkdtempSync(join(tmpdir(), 'blocklist-bench-'))
  try {
    const list = join(folder, 'hosts.txt')
    writeFileSync(list, Array.from({ length: ENTRIES }, (_, i) => `0.0.0.0 ${host(i)}\n`).join(''))
    const names: Variant[] = ['hopcode', 'set']
    report(await timeInTurn(import.meta.path, names, ROUNDS, () => [list]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function measure(open: (file: string) => Promise<Lookup>, list: string): Promise<Figures> {
  const before = memoryMib()
  const start = performance.now()
  const cpu = process.cpuUsage()
  const mainThread = mainThreadMs()
  const lookup = await open(list)
  const loadMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  const times = { loadMs, loadCpuMs: (user + system) / 1000 }
  const loading = { ...times, mainThreadMs: mainThreadMs() - mainThread }
  Bun.gc(true)
  await Bun.sleep(SETTLING_MS)
  const settledMib = memoryMib() - before
  const peakMib = peakMemoryMib() - before
  // A stride that is coprime to the count visits the list out of order, as callers do.
  const hits = urls((i) => `https://www.${host((i * 611_953) % ENTRIES)}/path`)
  const misses = urls((i) => `https://www.${host((i * 611_953) % ENTRIES)}.fine.example/path`)
  if (!hits.every(lookup)) throw new Error('a blocked host was missed')
  if (misses.some(lookup)) throw new Error('a host was blocked that is not on the list')
  const parseNs = nsEach(hits, (url) => hostOf(url).length > 0)
  const hitNs = nsEach(hits, lookup)
  const missNs = nsEach(misses, lookup)
  const lookupNs = Math.max(hitNs - parseNs, 0)
  return { ...loading, settledMib, peakMib, hitNs, missNs, parseNs, lookupNs }
}

/** CPU time of the main thread, from Linux's scheduler. */
function mainThreadMs(): number {
  const path = `/proc/self/task/${process.pid}/schedstat`
  return Number(readFileSync(path, 'utf8').split(' ')[0]) / 1e6
}

function host(i: number): string {
  return `${Bun.hash(String(i))
    .toString(36)
    .slice(0, 4 + (i % 9))}-${i}.example`
}

function urls(make: (i: number) => string): string[] {
  return Array.from({ length: LOOKUPS }, (_, i) => make(i))
}

function memoryMib(): number {
  return process.memoryUsage.rss() / 2 ** 20
}

/** The peak that Linux reports for this process; `ru_maxrss` would include that of its parent. */
function peakMemoryMib(): number {
  const status = readFileSync('/proc/self/status', 'utf8')
  return Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]) / 1024
}

/** Nanoseconds of CPU time: wall-clock time would include other processes of a busy machine. */
function nsEach(inputs: readonly string[], judge: Lookup): number {
  const times = Array.from({ length: 3 }, () => {
    const start = mainThreadMs()
    let count = 0
    for (const url of inputs) if (judge(url)) count++
    if (count !== 0 && count !== inputs.length) throw new Error('one kind of URL, two answers')
    return ((mainThreadMs() - start) * 1e6) / inputs.length
  })
  return median(times)
}

function report(figures: Record<Variant, Figures[]>): void {
  const middle = (name: Variant, key: keyof Figures) => median(figures[name].map((it) => it[key]))
  const rows: [keyof Figures, string][] = [
    ['loadMs', 'loading, ms'],
    ['loadCpuMs', 'loading, ms of processor time'],
    ['mainThreadMs', 'of that, on the HTTP thread'],
    ['settledMib', 'process growth, MiB'],
    ['peakMib', 'process growth at its peak, MiB'],
    ['hitNs', 'a blocked URL judged, ns'],
    ['missNs', 'a fine URL judged, ns'],
    ['parseNs', 'of that, parsing the URL, ns'],
    ['lookupNs', 'a blocked host looked up, ns'],
  ]
  console.log('| | hopcode | Set of strings | ratio |\n| --- | ---: | ---: | ---: |')
  for (const [key, label] of rows) {
    const [ours, theirs] = [middle('hopcode', key), middle('set', key)]
    const cells = [ours.toFixed(0), theirs.toFixed(0), (ours / theirs).toFixed(2)]
    console.log(`| ${label} | ${cells.join(' | ')} |`)
  }
  const growth = middle('hopcode', 'settledMib')
  if (growth > GROWTH_MAX_MIB) throw new Error(`the list takes more than ${GROWTH_MAX_MIB} MiB`)
}
