import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { databaseFile } from '../../src/db/open.ts'
import { repeatedUrls } from '../abuse/search.ts'
import { eventually } from '../support/app.ts'
import { makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'
import { DiskFault } from './lib/disk-fault.ts'
import { KeepAlive } from './lib/keep-alive.ts'

/** Stop signals at full load, with clients that never finish, and with a disk that hangs. */

const WORKERS = 32
const STOP_DEADLINE_MS = 10_000

/** A service with an account and a link. */
class Subject implements AsyncDisposable {
  readonly #folder: Disposable
  readonly env: Settings
  readonly key: string
  readonly service: Service
  /** Leads to https://example.com/stop. */
  readonly code: string
  /** Those of the database. */
  readonly files: readonly string[]

  private constructor(
    parts: Pick<Subject, 'env' | 'key' | 'service' | 'code'>,
    folder: Disposable,
  ) {
    this.#folder = folder
    this.env = parts.env
    this.key = parts.key
    this.service = parts.service
    this.code = parts.code
    const file = databaseFile(String(parts.env.DATA_DIR))
    this.files = [file, `${file}-wal`]
  }

  static async start(settings: Settings = {}): Promise<Subject> {
    const folder = temporaryFolder()
    const env = { ...unlimited(folder.path), ...settings }
    const key = await makeAccount(env)
    const service = await Service.start(env)
    const code = await service.shorten(key, 'https://example.com/stop')
    return new Subject({ env, key, service, code }, folder)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    this.#folder[Symbol.dispose]()
  }
}

/** What each stubborn client sends; then it does nothing more, and never closes. */
const STUBBORN = {
  'says nothing at all': '',
  'stops within the headers': 'GET /api/status HTTP/1.1\r\nHost: x\r\nX-Slow: ',
  'never finishes its body':
    'POST /api/shorten HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
    'X-API-Key: KEY\r\nContent-Length: 1000\r\n\r\n{"url":',
  'never finishes a chunked body':
    'POST /api/shorten HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
    'X-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"url":\r\n',
  'keeps its connection after an answer': 'GET /-/live HTTP/1.1\r\nHost: x\r\n\r\n',
  'reads nothing of a large answer':
    'GET /api/list?limit=200 HTTP/1.1\r\nHost: x\r\nX-API-Key: KEY\r\n\r\n'.repeat(20),
}

test('SIGTERM at full load with clients that never finish: nothing in flight fails, exit 0 within 10 s, counts exact', async () => {
  await using subject = await Subject.start()
  const { env, key, service, code } = subject
  const urls = Array.from({ length: 200 }, (_, i) => `https://example.com/${i}/${'x'.repeat(7000)}`)
  expect((await service.post('/api/bulk-shorten', key, { urls })).status).toBe(201)
  const stubborn = await Promise.all(
    Object.values(STUBBORN).map((words) => openStubborn(service, words.replace('KEY', key))),
  )
  const load = startLoad(service, key, code)
  while (load.redirects < 2000) await Bun.sleep(1)

  const start = performance.now()
  load.stop()
  const ended = service.end('SIGTERM')
  await load.ended
  expect(load.failures).toEqual([])
  expect(await ended).toBe(0)
  // The promise is a bound, not a speed.
  expect(performance.now() - start).toBeLessThan(STOP_DEADLINE_MS)
  for (const socket of stubborn) socket.destroy()

  await using next = await Service.start(env)
  expect(await next.hitCount(code)).toBe(load.redirects)
  for (const created of load.created) {
    expect((await next.fetch(`/api/lookup/${created}`)).status).toBe(200)
  }
  const list = await next.fetch('/api/list?limit=1', { headers: { 'x-api-key': key } })
  const { total } = (await list.json()) as { total: number }
  expect(total).toBe(1 + urls.length + load.created.length)
})

test('SIGTERM while searches run that are costly to compare: exit 0 within 10 s, and the log is folded in', async () => {
  await using subject = await Subject.start()
  const { key, service, files } = subject
  const urls = repeatedUrls(100)
  expect((await service.post('/api/bulk-shorten', key, { urls })).status).toBe(201)
  const search = async (text: string) => {
    const path = `/api/list?limit=1&search=${text}`
    return (await service.fetch(path, { headers: { 'x-api-key': key } })).status
  }
  const searches = ['a'.repeat(15_000), `${'a'.repeat(14_999)}b`, 'a'.repeat(200)].map(search)
  await Bun.sleep(100)
  const start = performance.now()
  expect(await service.end('SIGTERM')).toBe(0)
  expect(performance.now() - start).toBeLessThan(STOP_DEADLINE_MS)
  expect(await Promise.all(searches)).toEqual([400, 400, 200])
  expect(await service.errors).toContain('service.stopped')
  const wal = Bun.file(files[1] ?? '')
  expect((await wal.exists()) ? wal.size : 0).toBe(0)
})

test('SIGTERM while keep-alive clients go on asking: none is cut off without Connection: close, and the counts are exact', async () => {
  await using subject = await Subject.start()
  const { env, key, service, code } = subject
  const load = startLoad(service, key, code)
  while (load.redirects < 1000) await Bun.sleep(1)
  const ended = service.end('SIGTERM')
  await load.ended
  expect(await ended).toBe(0)
  expect(load.failures).toEqual([])
  expect(load.closed).toBe(WORKERS)

  await using next = await Service.start(env)
  expect(await next.hitCount(code)).toBe(load.redirects)
  for (const created of load.created) {
    expect((await next.fetch(`/api/lookup/${created}`)).status).toBe(200)
  }
})

test('SIGTERM amid a request: its body is waited for, and it is answered before the end', async () => {
  await using subject = await Subject.start()
  const { env, key, service } = subject
  using client = await Conversation.open(service.url)
  const body = '{"url":"https://example.com/late"}'
  const head = ['POST /api/shorten HTTP/1.1', 'Host: x', `X-API-Key: ${key}`]
  const more = ['Content-Type: application/json', `Content-Length: ${body.length}`, '', '']
  client.send([...head, ...more].join('\r\n') + body.slice(0, 5))
  const isServing = () =>
    service.fetch('/-/live').then(
      () => true,
      () => false,
    )
  expect(await isServing()).toBe(true)
  const ended = service.end('SIGTERM')
  await eventually('nobody else is served', async () => !(await isServing()))
  client.send(body.slice(5))
  const [answer] = await client.answers(1)
  expect(answer?.status).toBe(201)
  expect(await ended).toBe(0)
  await using next = await Service.start(env)
  const { code } = JSON.parse(answer?.text ?? '') as { code: string }
  expect((await next.fetch(`/${code}`)).status).toBe(302)
})

test('new connections are refused from the signal on, while open ones are answered', async () => {
  await using subject = await Subject.start()
  const { service, code } = subject
  const clients = await Promise.all(Array.from({ length: 4 }, () => KeepAlive.open(service.url)))
  const ask = () => Promise.all(clients.map((client) => client.ask('GET', `/${code}`)))
  for (const answer of await ask()) expect(answer).toMatchObject({ status: 302, isLast: false })
  const ended = service.end('SIGTERM')
  await eventually('the port is closed', () =>
    KeepAlive.open(service.url).then(
      (client) => {
        client.close()
        return false
      },
      () => true,
    ),
  )
  for (const answer of await ask()) expect(answer).toMatchObject({ status: 302, isLast: true })
  expect(await ended).toBe(0)
})

test.each(['SIGHUP', 'SIGINT'] as const)('%s stops the service as SIGTERM does', async (signal) => {
  using folder = temporaryFolder()
  await using service = await Service.start(unlimited(folder.path))
  expect(await service.end(signal)).toBe(0)
  expect(await service.errors).toContain('"service.stopped"')
})

test('a signal after SIGTERM does not break off the stop, and SIGUSR1 and SIGUSR2 change nothing', async () => {
  await using subject = await Subject.start()
  const { env, service, code } = subject
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.kill(service.pid, signal)
  expect((await service.fetch(`/${code}`)).status).toBe(302)
  const ended = service.end('SIGTERM')
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGHUP'] as const) process.kill(service.pid, signal)
  expect(await ended).toBe(0)
  await using next = await Service.start(env)
  expect(await next.hitCount(code)).toBe(1)
})

testWith('strace')(
  'a stop that the disk refuses says so in one line, with the hits that wait',
  async () => {
    await using subject = await Subject.start({ HIT_FLUSH_MS: '60000' })
    const { env, service, code, files } = subject
    {
      await using _ = await DiskFault.begin(service.pid, {
        calls: 'pwrite64,write,ftruncate,fsync,fdatasync',
        fault: 'EIO',
        files,
      })
      for (let i = 0; i < 5; i++) await service.fetch(`/${code}`)
      expect(await service.end('SIGTERM')).toBe(1)
    }
    const lines = (await service.errors).trim().split('\n')
    const failed = lines.filter((line) => line.includes('"service.stop_failed"'))
    expect(failed.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', hits_waiting: 5, cause: expect.stringContaining('I/O error') },
    ])
    for (const line of lines) expect(line).toStartWith('{')
    await using next = await Service.start(env)
    expect(await next.hitCount(code)).toBe(5)
  },
)

testWith('strace')('a stop whose disk hangs ends with 1 within 10 s and says why', async () => {
  await using subject = await Subject.start({ HIT_FLUSH_MS: '60000' })
  const { env, service, code, files } = subject
  await service.fetch(`/${code}`)
  await using _ = await DiskFault.begin(service.pid, {
    calls: 'fsync,fdatasync',
    fault: { delayMs: 10_000 },
    files,
  })
  const ended = service.end('SIGTERM')
  // All but the thread that strace holds in the call, as a disk would.
  await eventually('the process ends', () => hasEnded(service.pid))
  expect(await ended).toBe(1)
  const lines = (await service.errors).trim().split('\n')
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
    event: 'service.stop_failed',
    hits_waiting: 1,
    cause: 'not done after 9000 ms',
  })
  await using next = await Service.start(env)
  expect(await next.hitCount(code)).toBe(1)
})

/** Whether only an entry of the process table is left of the process, or not even that. */
function hasEnded(pid: number): boolean {
  const status = `/proc/${pid}/status`
  try {
    return /^State:\tZ/m.test(readFileSync(status, 'utf8'))
  } catch (error) {
    // It was reaped, also between opening and reading.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return true
    throw error
  }
}

interface Load {
  /** 302s received. */
  redirects: number
  /** Codes of the 201s received. */
  created: string[]
  /** Workers that were told that their connection is closed behind their last answer. */
  closed: number
  /** What went wrong with a request: each worker ends at its first. */
  failures: string[]
  /** No request begins after this. */
  stop(): void
  ended: Promise<unknown>
}

/** Workers that follow one link, each in four of them creating codes instead. */
function startLoad(service: Service, key: string, code: string): Load {
  let isStopping = false
  const load: Load = {
    redirects: 0,
    created: [],
    closed: 0,
    failures: [],
    stop: () => {
      isStopping = true
    },
    ended: Promise.resolve(),
  }
  const headers = [`X-API-Key: ${key}`, 'Content-Type: application/json']
  const ask = async (client: KeepAlive, worker: number, serial: number) => {
    if (worker % 4 > 0) {
      const { status, isLast } = await client.ask('GET', `/${code}`)
      if (status !== 302) throw new Error(`a redirect is answered by ${status}`)
      load.redirects++
      return isLast
    } else {
      const json = JSON.stringify({ url: `https://example.com/${worker}/${serial}` })
      const { status, body, isLast } = await client.ask('POST', '/api/shorten', headers, json)
      if (status !== 201) throw new Error(`a creation is answered by ${body}`)
      load.created.push((JSON.parse(body) as { code: string }).code)
      return isLast
    }
  }
  const work = async (worker: number) => {
    const client = await KeepAlive.open(service.url)
    try {
      for (let serial = 0; !isStopping; serial++) {
        if (!(await ask(client, worker, serial))) continue
        load.closed++
        break
      }
    } catch (error) {
      load.failures.push((error as Error).message)
    }
    client.close()
  }
  load.ended = Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)))
  return load
}

/** A connection that sends its words and never reads. */
function openStubborn(service: Service, words: string): Promise<Socket> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => {
      socket.pause()
      socket.write(words, () => resolve(socket))
    })
    socket.on('error', reject)
  })
}
