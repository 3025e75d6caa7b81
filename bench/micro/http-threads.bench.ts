// What is the gain of two HTTP threads in one process that share a counter, like the journal?
// bun bench/micro/http-threads.bench.ts

import { closedLoop } from '../lib/closed-part.ts'
import { describeMachine } from '../lib/machine.ts'
import { cpuSecondsOf } from '../lib/process-stats.ts'
import { alternate, medianOf, medianRatio } from '../lib/rounds.ts'

const ROUNDS = 3
const SECONDS = 2
const LOCATION = 'https://example.com/'

declare const self: Worker

if (!Bun.isMainThread) serveInThread()
else if (process.argv[2] === 'serve') startThreads(Number(process.argv[3]), Number(process.argv[4]))
else await compare()

interface Start {
  port: number
  counter: SharedArrayBuffer
}

/** One HTTP thread: the same 302 as the redirect path's, and one atomic step on shared memory. */
function serveInThread(): void {
  self.onmessage = ({ data: { port, counter } }: MessageEvent<Start>) => {
    const head = new Int32Array(counter)
    const headers = new Headers({ Location: LOCATION, 'Cache-Control': 'no-store' })
    const answer = () => {
      Atomics.add(head, 0, 1)
      return new Response(null, { status: 302, headers })
    }
    const fetch = () => new Response(null, { status: 404 })
    Bun.serve({ hostname: '127.0.0.1', port, reusePort: true, routes: { '/:code': answer }, fetch })
    postMessage('listening')
  }
}

function startThreads(threads: number, port: number): void {
  const counter = new SharedArrayBuffer(4)
  let listening = 0
  for (let i = 0; i < threads; i++) {
    const worker = new Worker(import.meta.url)
    worker.onmessage = () => {
      if (++listening === threads) console.log('ready')
    }
    worker.postMessage({ port, counter } satisfies Start)
  }
  process.on('SIGTERM', () => {
    console.log(new Int32Array(counter)[0])
    process.exit(0)
  })
}

async function compare(): Promise<void> {
  const { processor, cores, load, bun, commit } = describeMachine()
  console.log(`${cores} x ${processor}, load ${load.toFixed(2)}, bun ${bun}, commit ${commit}`)
  const variants = [
    { name: '1', threads: 1 },
    { name: '2', threads: 2 },
  ]
  const results = await alternate(
    variants,
    ROUNDS,
    async ({ threads }) => ({ figures: await measure(threads) }),
    () => {},
  )
  console.log('| HTTP threads | requests/s | CPU µs per request |\n| ---: | ---: | ---: |')
  for (const { name } of variants) {
    const [rate, cpu] = ['rate', 'cpu'].map((key) => medianOf(results, name, key))
    console.log(`| ${name} | ${rate?.toFixed(0)} | ${cpu?.toFixed(2)} |`)
  }
  const times = medianRatio(results, '2', '1', 'rate')
  console.log(`Two threads answer ${times.toFixed(2)} times the requests of one.`)
}

async function measure(threads: number): Promise<{ rate: number; cpu: number }> {
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  const words = [process.execPath, import.meta.path, 'serve', String(threads), String(port)]
  const server = Bun.spawn(words, { stdout: 'pipe', stderr: 'inherit' })
  const output = server.stdout.getReader()
  await output.read()
  const target = { path: '/SPRING26', status: 302, location: LOCATION }
  const load = { hostname: '127.0.0.1', port, targets: [target], connections: 64 }
  await closedLoop({ ...load, seconds: 1 })
  const cpuBefore = cpuSecondsOf(server.pid)
  const { requests, seconds, failed } = await closedLoop({ ...load, seconds: SECONDS })
  const cpu = ((cpuSecondsOf(server.pid) - cpuBefore) * 1e6) / requests
  server.kill('SIGTERM')
  const counted = Number(new TextDecoder().decode((await output.read()).value))
  if (failed > 0 || counted < requests) {
    throw new Error(`${failed} wrong answers, ${counted} counted of ${requests} and more`)
  }
  return { rate: requests / seconds, cpu }
}
