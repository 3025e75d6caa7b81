import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { databaseFile } from '../../src/db/open.ts'
import { repeatedUrls } from '../abuse/search.ts'
import { eventually } from '../support/app.ts'
import { makeAccount, Service } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import { KeepAlive } from './lib/keep-alive.ts'

/** SIGTERM at full load, with clients that never finish. */

const WORKERS = 24
const STOP_DEADLINE_MS = 10_000

const unlimited = (dataDir: string) => ({
  DATA_DIR: dataDir,
  ANONYMOUS_READS_PER_MINUTE: '0',
  ENTERPRISE_WRITES_PER_MINUTE: '0',
  ENTERPRISE_READS_PER_MINUTE: '0',
})

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
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/stop')
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
}, 60_000)

test('SIGTERM while searches run that are costly to compare: exit 0 within 10 s, and the log is folded in', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
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
  const wal = Bun.file(`${databaseFile(folder.path)}-wal`)
  expect((await wal.exists()) ? wal.size : 0).toBe(0)
}, 60_000)

test('SIGTERM while clients go on asking: each answer is whole, and every one that came is counted', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/stop')
  const load = startLoad(service, key, code)
  while (load.redirects < 1000) await Bun.sleep(1)
  const ended = service.end('SIGTERM')
  await load.ended
  expect(await ended).toBe(0)
  // Whoever asks after the stop is turned away without an answer, not with half of one.
  expect(
    load.failures.filter((failure) => !failure.endsWith(' after 0 bytes of the answer')),
  ).toEqual([])

  await using next = await Service.start(env)
  const counted = await next.hitCount(code)
  expect(counted).toBeGreaterThanOrEqual(load.redirects)
  expect(counted).toBeLessThanOrEqual(load.redirects + WORKERS)
  for (const created of load.created) {
    expect((await next.fetch(`/api/lookup/${created}`)).status).toBe(200)
  }
}, 60_000)

test('SIGTERM amid a request: its body is waited for, and it is answered before the end', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
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

interface Load {
  /** 302s received. */
  redirects: number
  /** Codes of the 201s received. */
  created: string[]
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
    failures: [],
    stop: () => {
      isStopping = true
    },
    ended: Promise.resolve(),
  }
  const headers = [`X-API-Key: ${key}`, 'Content-Type: application/json']
  const ask = async (client: KeepAlive, worker: number, serial: number) => {
    if (worker % 4 > 0) {
      const { status } = await client.ask('GET', `/${code}`)
      if (status !== 302) throw new Error(`a redirect is answered by ${status}`)
      load.redirects++
    } else {
      const json = JSON.stringify({ url: `https://example.com/${worker}/${serial}` })
      const { status, body } = await client.ask('POST', '/api/shorten', headers, json)
      if (status !== 201) throw new Error(`a creation is answered by ${body}`)
      load.created.push((JSON.parse(body) as { code: string }).code)
    }
  }
  const work = async (worker: number) => {
    const client = await KeepAlive.open(service.url)
    try {
      for (let serial = 0; !isStopping; serial++) await ask(client, worker, serial)
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
