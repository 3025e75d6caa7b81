import { expect, test } from 'bun:test'
import { Lock } from '../../src/hot/lock.ts'
import { RedirectCounters } from '../../src/hot/redirect-counters.ts'
import type { RedirectSettings } from '../../src/redirect/thread.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { Conversation, type Told } from '../support/conversation.ts'
import { freePort } from '../support/ports.ts'
import { openQuickWorker } from '../support/reused-worker.ts'

const THREADS = 4
const env = { REDIRECT_THREADS: String(THREADS), ENTERPRISE_WRITES_PER_MINUTE: '0' }
const ROUNDS = 1000

/** A connection on which one request follows the other. */
class Visitor implements Disposable {
  readonly #conversation: Conversation
  #asked = 0

  private constructor(conversation: Conversation) {
    this.#conversation = conversation
  }

  static async open(app: TestApp): Promise<Visitor> {
    return new Visitor(await Conversation.open(app.url))
  }

  async follow(code: string): Promise<Told> {
    this.#conversation.send(`GET /${code} HTTP/1.1\r\nHost: hop.test\r\n\r\n`)
    const asked = ++this.#asked
    const answers = await this.#conversation.answers(asked)
    return answers[asked - 1] as Told
  }

  [Symbol.dispose](): void {
    this.#conversation[Symbol.dispose]()
  }
}

/** Opens redirect threads, and reads what each has counted. */
class ThreadCounts {
  readonly workers: Worker[] = []
  /** By the thread; one that is restarted goes on counting. */
  readonly #counters = new Map<number, RedirectCounters>()

  openWorker = (url: URL): Worker => {
    if (!url.pathname.endsWith('/redirect.ts')) return openQuickWorker(url)
    const worker = new Worker(url)
    this.workers.push(worker)
    const post = worker.postMessage.bind(worker) as (...args: unknown[]) => void
    worker.postMessage = (message: { start?: RedirectSettings }, ...rest: unknown[]) => {
      const { thread, counters } = message.start ?? {}
      if (thread && counters) this.#counters.set(thread, new RedirectCounters(counters))
      post(message, ...rest)
    }
    return worker
  }

  /** A count of each thread. */
  read(name: 'notFound' | 'limited'): number[] {
    return [...this.#counters.values()].map((counters) => counters.get(name))
  }
}

/** One connection to each thread: the system spreads connections over them at random. */
async function visitEach(app: TestApp, threads: ThreadCounts, code: string): Promise<Visitor[]> {
  const found = new Map<number, Visitor>()
  for (let tries = 0; found.size < THREADS && tries < 1000; tries++) {
    const visitor = await Visitor.open(app)
    await visitor.follow(code)
    const before = threads.read('notFound')
    await visitor.follow('NOBODY99')
    const after = threads.read('notFound')
    const thread = after.findIndex((count, at) => count > (before[at] ?? 0))
    if (found.has(thread)) visitor[Symbol.dispose]()
    else found.set(thread, visitor)
  }
  expect([...found.keys()]).not.toContain(-1)
  expect(found.size).toBe(THREADS)
  return [...found.values()]
}

test('after a change or a deletion is acknowledged, no thread returns the old destination', async () => {
  const threads = new ThreadCounts()
  const { openWorker } = threads
  const unlimited = { ...env, ANONYMOUS_REDIRECTS_PER_MINUTE: '0' }
  await using app = await testApp({ env: unlimited, openWorker })
  const key = 'enterprise'
  const claimed = await app.claim('MOVING1', 'https://example.com/0', key)
  const visitors = await visitEach(app, threads, claimed.code)
  const locations = async () => {
    const answers = await Promise.all(visitors.map((visitor) => visitor.follow(claimed.code)))
    return answers.map(({ headers }) => headers.get('location'))
  }
  let { passcode } = claimed
  for (let round = 1; round <= ROUNDS; round++) {
    if (round % 10 === 0) {
      const json = { code: claimed.code, passcode }
      expect((await app.call('POST', '/api/delete', { key, json })).status).toBe(200)
      expect(await locations()).toEqual(visitors.map(() => null))
      passcode = (await app.reserve('MOVING1', key)).passcode
    }
    const url = `https://example.com/${round}`
    const json = { code: claimed.code, passcode, url }
    expect((await app.call('POST', '/api/update', { key, json })).status).toBe(200)
    expect(await locations()).toEqual(visitors.map(() => url))
  }
}, 120_000)

test('the threads share the limits and the hits of a link, exactly', async () => {
  const threads = new ThreadCounts()
  const { openWorker } = threads
  const limited = { ...env, ANONYMOUS_REDIRECTS_PER_MINUTE: '100' }
  await using app = await testApp({ env: limited, openWorker })
  const { code } = await app.claim('SHARED1', 'https://example.com/', 'enterprise')
  const visitors = await Promise.all(Array.from({ length: 40 }, () => Visitor.open(app)))
  const rounds = Array.from({ length: 10 }, (_, round) => round)
  const answers = await Promise.all(
    visitors.flatMap((visitor) => rounds.map(() => visitor.follow(code))),
  )
  const found = answers.filter(({ status }) => status === 302)
  expect(found).toHaveLength(100)
  expect(threads.read('limited').filter((count) => count > 0).length).toBeGreaterThan(1)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(300)
  const { body } = await app.call('GET', `/api/lookup/${code}`)
  expect(body.hit_count).toBe(100)
  for (const visitor of visitors) visitor[Symbol.dispose]()
})

test('a link with a limit of hits ends exactly there, whatever thread its visitors reach', async () => {
  const threads = new ThreadCounts()
  const { openWorker } = threads
  await using app = await testApp({ env, openWorker })
  const { code } = await app.claim('ENDING1', 'https://example.com/', 'enterprise')
  for (const visitor of await visitEach(app, threads, code)) visitor[Symbol.dispose]()
  const { body: before } = await app.call('GET', `/api/lookup/${code}`)
  const json = { max_hits: Number(before.hit_count) + 50 }
  await app.call('PATCH', `/api/links/${code}`, { key: 'enterprise', json })
  const visitors = await Promise.all(Array.from({ length: 120 }, () => Visitor.open(app)))
  const answers = await Promise.all(visitors.map((visitor) => visitor.follow(code)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 302)).toHaveLength(50)
  expect(statuses.filter((status) => status === 410)).toHaveLength(70)
  for (const visitor of visitors) visitor[Symbol.dispose]()
})

test('a thread that ends is reported and restarted, while the others answer', async () => {
  const threads = new ThreadCounts()
  const { openWorker, workers } = threads
  await using app = await testApp({ env, openWorker })
  const { code } = await app.claim('LASTING', 'https://example.com/', 'enterprise')
  const visitors = await visitEach(app, threads, code)
  workers[0]?.terminate()
  const logged = (event: string) => app.log.some((line) => line.includes(`"event":"${event}"`))
  await eventually('the end is logged', () => logged('thread.ended'))
  expect((await app.call('GET', '/-/live')).status).toBe(200)
  expect((await app.call('GET', `/${code}`)).status).toBe(302)
  await eventually('the thread runs again', () => logged('thread.restarted'))
  const again = await visitEach(app, threads, code)
  expect(workers).toHaveLength(THREADS + 1)
  const { body } = await app.call('GET', `/api/lookup/${code}`)
  const { body: later } = await app.call('GET', `/api/lookup/${code}`)
  expect(later.hit_count).toBe(body.hit_count)
  for (const visitor of [...visitors, ...again]) visitor[Symbol.dispose]()
})

test('the locks of a thread that ends are freed', async () => {
  const workers: { worker: Worker; settings: RedirectSettings }[] = []
  await using app = await testApp({
    env,
    openWorker: (url) => {
      if (!url.pathname.endsWith('/redirect.ts')) return openQuickWorker(url)
      const worker = new Worker(url)
      const post = worker.postMessage.bind(worker) as (...args: unknown[]) => void
      worker.postMessage = (message: { start?: RedirectSettings }, ...rest: unknown[]) => {
        if (message.start) workers.push({ worker, settings: message.start })
        post(message, ...rest)
      }
      return worker
    },
  })
  const [first] = workers
  if (!first) throw new Error('no thread was started')
  const { limiter, thread } = first.settings
  // The lock is the first word of a window's first shard.
  const words = new Int32Array(limiter.addresses.redirect.buffer)
  expect(new Lock(words, 0, thread).acquire()).toBe(true)
  first.worker.terminate()
  await eventually('the lock is free', () => Atomics.load(words, 0) === 0)
  const { code } = await app.claim('UNLOCKED', 'https://example.com/', 'enterprise')
  expect((await app.call('GET', `/${code}`)).status).toBe(302)
})

test('an exception on a redirect thread is a 500 that is logged and counted, and the thread goes on', async () => {
  await using app = await testApp({
    env: { ...env, REDIRECT_THREADS: '1' },
    openWorker: (url) => {
      if (!url.pathname.endsWith('/redirect.ts')) return openQuickWorker(url)
      const worker = new Worker(url)
      const post = worker.postMessage.bind(worker) as (...args: unknown[]) => void
      worker.postMessage = (message: { start?: RedirectSettings }, ...rest: unknown[]) => {
        // Hits cannot be appended to a journal without words.
        if (message.start) message.start.journal.ring = new SharedArrayBuffer(0)
        post(message, ...rest)
      }
      return worker
    },
  })
  const { code } = await app.claim('BROKEN1', 'https://example.com/', 'enterprise')
  using visitor = await Visitor.open(app)
  const ids: unknown[] = []
  for (let i = 0; i < 200; i++) {
    const { status, text, headers } = await visitor.follow(code)
    expect([status, JSON.parse(text).error]).toEqual([500, 'Internal server error'])
    expect(JSON.parse(text).request_id).toBe(headers.get('x-request-id'))
    ids.push(JSON.parse(text).request_id)
  }
  expect((await visitor.follow('NOBODY99')).status).toBe(404)
  const failures = () =>
    app.log.filter((line) => line.includes('"request.failed"')).map((line) => JSON.parse(line))
  await eventually('it is logged', () => failures().length > 0)
  // The number of lines does not depend on what clients ask for.
  expect(failures().length).toBeLessThanOrEqual(100)
  expect(failures()[0]).toMatchObject({ level: 'error', path: '/:code', request_id: ids[0] })
  expect(failures()[0].cause).toContain('RangeError')
  const page = await (await fetch(`${app.url}/-/metrics`)).text()
  expect(page).toContain('\nhopcode_redirects_total{outcome="failed"} 200\n')
})

test('redirects are answered while the rest of the service starts', async () => {
  await using before = await testApp({ env })
  const { code } = await before.claim('EARLIER', 'https://example.com/', 'enterprise')
  await before.stop()
  const held = Promise.withResolvers<void>()
  const PORT = String(freePort())
  const starting = testApp({
    env: { ...env, PORT },
    dataDir: before.dataDir,
    openWorker: (url) => {
      if (!url.pathname.endsWith('/writer.ts')) return openQuickWorker(url)
      const worker = new Worker(url)
      const post = worker.postMessage.bind(worker) as (...args: unknown[]) => void
      worker.postMessage = (...args: unknown[]) => void held.promise.then(() => post(...args))
      return worker
    },
  })
  const ask = (path: string) => fetch(`http://127.0.0.1:${PORT}${path}`, { redirect: 'manual' })
  await eventually('the port is open', () => ask(`/${code}`).then(isRedirect, () => false))
  let isReady = false
  const readiness = ask('/-/ready').finally(() => {
    isReady = true
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(`/${code}`)))
  expect(answers.every(isRedirect)).toBe(true)
  expect(isReady).toBe(false)
  held.resolve()
  expect((await readiness).status).toBe(200)
  await using app = await starting
  const { body } = await app.call('GET', `/api/lookup/${code}`)
  // One by `eventually`.
  expect(body.hit_count).toBe(answers.length + 1)
})

const isRedirect = ({ status }: Response): boolean => status === 302
