// What do 200,000 cached links cost: to find, to add, and at each garbage collection?
// bun bench/micro/link-cache.bench.ts

import { LRUCache } from 'lru-cache'
import { CodeVersions, encodeCode } from '../../src/hot/code-versions.ts'
import { type Destination, DestinationCache } from '../../src/hot/destination-cache.ts'
import type { Code } from '../../src/lib/code.ts'
import { newCode } from '../../src/lib/code.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { realisticUrl, seededBytes, seededRandom } from '../lib/realistic-urls.ts'
import { median } from '../lib/rounds.ts'

const ROUNDS = 3
const HELD = 200_000
const HOT = 100
const FINDS = 3_000_000
const NEWCOMERS = 300_000
const COLLECTIONS = 5

interface Cache {
  find(code: Code): Destination | undefined
  set(code: Code, destination: Destination): void
}

const VARIANTS = {
  hopcode: (): Cache => {
    const cache = new DestinationCache<Code>({
      max: HELD,
      versions: CodeVersions.allocate(),
      encode: encodeCode,
    })
    return {
      find: (code) => cache.find(code),
      set: (code, what) => cache.set(code, what, cache.versionOf(code)),
    }
  },
  lru: (): Cache => {
    const cache = new LRUCache<Code, Destination>({ maxSize: HELD, sizeCalculation: () => 1 })
    return { find: (code) => cache.get(code), set: (code, what) => cache.set(code, what) }
  },
}
type Variant = keyof typeof VARIANTS
const NAMES: readonly Variant[] = ['hopcode', 'lru']

const FIGURES = [
  { name: 'find, 100 hot codes, ns', key: 'hotNs', digits: 0 },
  { name: 'find, 200,000 codes at random, ns', key: 'spreadNs', digits: 0 },
  { name: 'set of a new code, another one going, ns', key: 'setNs', digits: 0 },
  { name: 'full garbage collection, ms', key: 'collectionMs', digits: 2 },
  { name: 'memory, MiB', key: 'memoryMiB', digits: 0 },
] as const
type Timing = Record<(typeof FIGURES)[number]['key'], number>

const [variant] = process.argv.slice(2)
if (variant === 'hopcode' || variant === 'lru') console.log(JSON.stringify(measure(variant)))
else await compare()

async function compare(): Promise<void> {
  printMachine()
  const timings = await timeInTurn<Variant, Timing>(import.meta.path, NAMES, ROUNDS)
  console.log('| 200,000 links held | hopcode | lru-cache | ratio |\n| --- | ---: | ---: | ---: |')
  for (const { name, key, digits } of FIGURES) {
    const [ours, theirs] = NAMES.map((of) => median(timings[of].map((timing) => timing[key]))) as [
      number,
      number,
    ]
    const cells = [ours.toFixed(digits), theirs.toFixed(digits), (ours / theirs).toFixed(2)]
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}

function measure(name: Variant): Timing {
  const random = seededRandom(1)
  const bytes = seededBytes(random)
  // Codes come as bytes, as in a request: a reused string would have its hash cached.
  const drawn = Buffer.from(Array.from({ length: HELD }, () => newCode(bytes)).join(''))
  const codeAt = (index: number) => drawn.toString('latin1', 8 * index, 8 * index + 8) as Code
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  const cache = VARIANTS[name]()
  const destination = (id: number) => ({
    id,
    isDisabled: false,
    rules: '',
    location: realisticUrl(random, id),
  })
  for (let i = 0; i < HELD; i++) cache.set(codeAt(i), destination(i))
  for (const i of [0, 1, HELD - 1]) {
    if (cache.find(codeAt(i))?.id !== i) throw new Error(`${codeAt(i)} leads elsewhere`)
  }
  Bun.gc(true)
  const memoryMiB = (process.memoryUsage.rss() - before) / 2 ** 20
  const collectionMs = median(Array.from({ length: COLLECTIONS }, collect))
  const hotNs = timeFinds(cache, codeAt, random, HOT)
  const spreadNs = timeFinds(cache, codeAt, random, HELD)
  const newcomers = Array.from({ length: NEWCOMERS }, (_, i) => destination(i))
  const codes = newcomers.map(() => newCode(bytes))
  const start = performance.now()
  for (let i = 0; i < NEWCOMERS; i++) cache.set(codes[i] as Code, newcomers[i] as Destination)
  const setNs = ((performance.now() - start) * 1e6) / NEWCOMERS
  if (!cache.find(codes.at(-1) as Code)) throw new Error('the newest is not there')
  return { hotNs, spreadNs, setNs, collectionMs, memoryMiB }
}

function collect(): number {
  const start = performance.now()
  Bun.gc(true)
  return performance.now() - start
}

/** Nanoseconds per find among the first `among` codes, without creating the code's string. */
function timeFinds(
  cache: Cache,
  codeAt: (index: number) => Code,
  random: () => number,
  among: number,
): number {
  const order = Uint32Array.from({ length: 1 << 16 }, () => Math.floor(random() * among))
  const time = (look: (code: Code) => number) => {
    let sum = 0
    const start = performance.now()
    for (let i = 0; i < FINDS; i++) sum += look(codeAt(order[i & 0xffff] as number))
    const ns = ((performance.now() - start) * 1e6) / FINDS
    if (sum <= 0) throw new Error('nothing was found')
    return ns
  }
  const textOnly = time((code) => code.length)
  return time((code) => cache.find(code)?.location?.length ?? 0) - textOnly
}
