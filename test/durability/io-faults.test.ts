import { expect } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { testWith } from '../support/tools.ts'
import { DiskFault, type FaultWords } from './lib/disk-fault.ts'
import { SeededRandom } from './lib/seeded-random.ts'

const testTraced = testWith('strace')

/** A disk that fails under the running program, by errors that the kernel gives its calls. */

const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 4)
const RECOVERY_MS = 5000

const WRITES = 'pwrite64,write,ftruncate'
const SYNCS = 'fsync,fdatasync'
const FAULTS: (Omit<FaultWords, 'files'> & { name: string })[] = [
  { name: 'a sync fails with EIO', calls: SYNCS, fault: 'EIO' },
  { name: 'a write fails with EIO', calls: WRITES, fault: 'EIO' },
  { name: 'a write fails with ENOSPC', calls: WRITES, fault: 'ENOSPC' },
  { name: 'the file system is read-only', calls: `${WRITES},${SYNCS}`, fault: 'EROFS' },
]

const databaseFiles = (dataDir: string) =>
  ['hopcode.db', 'hopcode.db-wal', 'hopcode.db-journal'].map((name) => join(dataDir, name))

testTraced.each(FAULTS)(
  '$name: redirects go on, writes are 500 and leave nothing, and its end ends it',
  async (fault) => {
    using folder = temporaryFolder()
    const env = unlimited(folder.path)
    const key = await makeAccount(env)
    const kept = 'https://example.com/kept'
    {
      await using service = await Service.start(env)
      const created = await service.post('/api/shorten', key, { url: kept })
      const { code, passcode } = (await created.json()) as { code: string; passcode: string }
      {
        await using _ = await DiskFault.begin(service.pid, {
          ...fault,
          files: databaseFiles(folder.path),
        })
        const refused: [path: string, json: unknown][] = [
          ['/api/shorten', { url: 'https://example.com/refused' }],
          ['/api/reserve', { code: 'REFUSED' }],
          ['/api/update', { code, passcode, url: 'https://example.com/changed' }],
          ['/api/delete', { code, passcode }],
          ['/api/bulk-shorten', { urls: ['https://example.com/1', 'https://example.com/2'] }],
        ]
        for (const [path, json] of refused) {
          const response = await service.post(path, key, json)
          expect([path, response.status]).toEqual([path, 500])
          expect(await response.json()).toEqual({
            error: 'Internal server error',
            request_id: expect.any(String),
          })
        }
        for (let i = 0; i < 200; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
        expect(await service.hitCount(code)).toBe(200)
        const status = await service.fetch('/api/status')
        expect(status.status).toBe(503)
        expect(await status.json()).toMatchObject({ status: 'degraded', database: 'error' })
        expect((await service.fetch('/-/live')).status).toBe(200)
      }
      await recovered(service)
      expect(await list(service, key)).toEqual([kept])
      expect(await service.hitCount(code)).toBe(200)
      expect((await service.fetch('/api/lookup/REFUSED')).status).toBe(404)
      await service.shorten(key, 'https://example.com/after')
      expect(await service.end('SIGTERM')).toBe(0)
    }
    await using next = await Service.start(env)
    expect(await list(next, key)).toEqual(['https://example.com/after', kept])
  },
)

const seeded = `(seed ${SEED})`

testTraced(
  `a disk that fails now and then: the answered is stored, the rest not ${seeded}`,
  async () => {
    using folder = temporaryFolder()
    const random = new SeededRandom(SEED)
    const env = unlimited(folder.path)
    const key = await makeAccount(env)
    const stored = new Set<string>()
    let refused = 0
    let answered = 0
    for (let round = 0; round < ROUNDS; round++) {
      const fault = FAULTS[round % FAULTS.length] as (typeof FAULTS)[number]
      const isKilled = random.chance(0.3)
      await using service = await Service.start(env)
      expect(await list(service, key)).toEqual([...stored].sort())
      const doubtful: string[][] = []
      {
        await using _ = await DiskFault.begin(service.pid, {
          ...fault,
          files: databaseFiles(folder.path),
          when: `${1 + random.below(20)}+${2 + random.below(12)}`,
        })
        const write = async (worker: number) => {
          for (let i = 0; i < 15; i++) {
            const urls = Array.from(
              { length: 1 + random.below(3) },
              (_, item) => `https://example.com/${round}/${worker}/${i}/${item}`,
            )
            const response = await service.post('/api/bulk-shorten', key, { urls })
            expect([201, 500]).toContain(response.status)
            if (response.status === 500) {
              doubtful.push(urls)
              refused++
            } else {
              for (const url of urls) stored.add(url)
              answered++
            }
          }
        }
        await Promise.all(Array.from({ length: 4 }, (_, worker) => write(worker)))
        if (isKilled) await service.end('SIGKILL')
      }
      if (!isKilled) {
        await recovered(service)
        expect(await list(service, key)).toEqual([...stored].sort())
        expect(await service.end(random.chance(0.5) ? 'SIGTERM' : 'SIGKILL')).not.toBe(1)
        continue
      }
      // Who is refused and then cut off cannot know: a refused batch may be there, but whole.
      await using next = await Service.start(env)
      const found = new Set(await list(next, key))
      for (const urls of doubtful) {
        const there = urls.filter((url) => found.has(url))
        expect([0, urls.length]).toContain(there.length)
        for (const url of there) stored.add(url)
      }
    }
    await using service = await Service.start(env)
    expect(await list(service, key)).toEqual([...stored].sort())
    expect(refused).toBeGreaterThan(0)
    expect(answered).toBeGreaterThan(0)
  },
  600_000,
)

testTraced(
  'a checkpoint that fails loses nothing: the log keeps what the database file could not take',
  async () => {
    using folder = temporaryFolder()
    const env = unlimited(folder.path)
    const key = await makeAccount(env)
    const stored: string[] = []
    {
      await using service = await Service.start(env)
      await using _ = await DiskFault.begin(service.pid, {
        calls: `${WRITES},${SYNCS}`,
        fault: 'EIO',
        files: [join(folder.path, 'hopcode.db')],
      })
      for (let i = 0; i < 5; i++) {
        const urls = Array.from(
          { length: 200 },
          (_, n) => `https://example.com/${i}/${n}/${'x'.repeat(3000)}`,
        )
        expect((await service.post('/api/bulk-shorten', key, { urls })).status).toBe(201)
        stored.push(...urls)
      }
      expect((await service.fetch('/api/status')).status).toBe(200)
      expect(await service.end('SIGTERM')).toBe(0)
    }
    expect(statSync(join(folder.path, 'hopcode.db-wal')).size).toBeGreaterThan(2_000_000)
    await using next = await Service.start(env)
    expect(await list(next, key)).toEqual(stored.sort())
  },
)

testTraced('on a slow disk a stop does not wait for images that are being made anew', async () => {
  using folder = temporaryFolder()
  const env = { ...unlimited(folder.path), BASE_URL: 'https://old.test' }
  const key = await makeAccount(env)
  {
    await using service = await Service.start(env)
    const urls = Array.from({ length: 1000 }, (_, n) => `https://example.com/${n}`)
    expect((await service.post('/api/bulk-shorten', key, { urls })).status).toBe(201)
    expect(await service.end('SIGTERM')).toBe(0)
  }
  await using service = await Service.start({ ...env, BASE_URL: 'https://new.test' })
  await using _ = await DiskFault.begin(service.pid, { calls: SYNCS, fault: { delayMs: 150 } })
  expect(await service.end('SIGTERM')).toBe(0)
  expect(await service.errors).not.toContain('qr.remade')
  expect(statSync(join(folder.path, 'hopcode.db-wal')).size).toBe(0)
})

testTraced(
  'a disk that hangs for seconds: writes are reported as failing and it is not ready until it answers',
  async () => {
    using folder = temporaryFolder()
    const env = unlimited(folder.path)
    const key = await makeAccount(env)
    await using service = await Service.start(env)
    const code = await service.shorten(key, 'https://example.com/before')
    {
      await using _ = await DiskFault.begin(service.pid, {
        calls: SYNCS,
        fault: { delayMs: 8000 },
        files: databaseFiles(folder.path),
        when: '1',
      })
      const created = service.post('/api/shorten', key, { url: 'https://example.com/slow' })
      await eventually('the service is not ready', async () => {
        return (await service.fetch('/-/ready')).status === 503
      })
      const status = await service.fetch('/api/status')
      expect(status.status).toBe(503)
      expect(await status.json()).toMatchObject({
        error: 'Service degraded: its writer thread does not answer',
        status: 'degraded',
        database: 'error',
      })
      const metrics = await (await service.fetch('/-/metrics')).text()
      expect(metrics).toContain('hopcode_writes_failing 1\n')
      expect(metrics).toContain('hopcode_ready 0\n')
      expect(metrics).toContain('hopcode_thread_hanging{thread="writer"} 1\n')
      expect(metrics).toContain('hopcode_thread_hanging{thread="reader"} 0\n')
      expect((await service.fetch('/-/live')).status).toBe(200)
      expect((await service.fetch(`/${code}`)).status).toBe(302)
      expect((await created).status).toBe(201)
    }
    await recovered(service)
    expect((await service.fetch('/-/ready')).status).toBe(200)
    const metrics = await (await service.fetch('/-/metrics')).text()
    expect(metrics).toContain('hopcode_writes_failing 0\n')
    expect(await service.end('SIGTERM')).toBe(0)
    const lines = (await service.errors).split('\n').filter((line) => line.includes('"thread.'))
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', event: 'thread.hanging', thread: 'writer', ms: expect.any(Number) },
      { level: 'info', event: 'thread.recovered', thread: 'writer' },
    ])
  },
)

/** Every URL of the account, sorted. */
async function list(service: Service, key: string): Promise<string[]> {
  const urls: string[] = []
  for (;;) {
    const path = `/api/list?limit=200&offset=${urls.length}`
    const response = await service.fetch(path, { headers: { 'x-api-key': key } })
    expect(response.status).toBe(200)
    const { items, total } = (await response.json()) as { items: { url: string }[]; total: number }
    urls.push(...items.map(({ url }) => url))
    if (urls.length >= total) return urls.sort()
  }
}

/** Without a restart, within five seconds. */
async function recovered(service: Service): Promise<void> {
  const deadline = performance.now() + RECOVERY_MS
  let status = 0
  while (performance.now() < deadline && status !== 200) {
    status = (await service.fetch('/api/status')).status
    if (status !== 200) await Bun.sleep(10)
  }
  expect(status).toBe(200)
}
