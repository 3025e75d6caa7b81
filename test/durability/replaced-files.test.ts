import { expect, test } from 'bun:test'
import { cpSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolderInMemory as temporaryFolder } from '../support/folder.ts'

/** Files of the data folder that are deleted, replaced or cut short under the running service. */

interface LogLine {
  event: string
  problem?: string
}

async function start(dataDir: string) {
  const env = { DATA_DIR: dataDir, ANONYMOUS_READS_PER_MINUTE: '0' }
  const key = await makeAccount(env)
  const service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/before')
  return { env, key, service, code }
}

async function linesOf(service: Service): Promise<LogLine[]> {
  const lines = (await service.errors).trim().split('\n')
  return lines.map((line) => JSON.parse(line))
}

const isReady = async (service: Service) => (await service.fetch('/-/ready')).ok

const FILES = ['hopcode.db', 'hopcode.db-wal', 'hopcode.db-shm', 'hits.journal', 'serving.lock']
const CHANGES: { name: string; says: RegExp; change: (file: string) => void }[] = [
  { name: 'deleted', says: /was deleted while the service runs$/, change: (file) => rmSync(file) },
  {
    name: 'replaced',
    says: /was replaced while the service runs$/,
    change: (file) => {
      cpSync(file, `${file}.other`)
      renameSync(`${file}.other`, file)
    },
  },
]
const CASES = CHANGES.flatMap((change) => FILES.map((file) => ({ ...change, file })))

test.concurrent.each(CASES)(
  '$file that is $name under the service: writes are refused, ready says no, redirects go on',
  async ({ file, says, change }) => {
    using folder = temporaryFolder()
    const { service: running, key, code } = await start(folder.path)
    await using service = running
    change(join(folder.path, file))
    await eventually('it is not ready', async () => !(await isReady(service)))
    for (let i = 0; i < 3; i++) {
      expect((await service.fetch(`/${code}`)).status).toBe(302)
      const refused = await service.post('/api/shorten', key, { url: `https://example.com/${i}` })
      expect(refused.status).toBe(500)
      expect(await refused.json()).toEqual({
        error: 'Internal server error',
        request_id: expect.any(String),
      })
    }
    const status = await service.fetch('/api/status')
    expect(status.status).toBe(503)
    expect(await status.json()).toMatchObject({ status: 'degraded' })
    expect((await service.fetch('/-/live')).status).toBe(200)
    expect(await service.hitCount(code)).toBe(3)
    expect(await service.end('SIGTERM')).toBe(0)
    const said = (await linesOf(service)).filter(({ event }) => event === 'data.file_replaced')
    expect(said).toHaveLength(1)
    expect(said[0]?.problem).toStartWith(join(folder.path, file))
    expect(said[0]?.problem).toMatch(says)
  },
)

test('a database that was moved away and back: writes go on, and everything is there', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'hopcode.db')
  const { env, service: running, key, code } = await start(folder.path)
  {
    await using service = running
    renameSync(file, `${file}-elsewhere`)
    await eventually('it is not ready', async () => !(await isReady(service)))
    expect((await service.fetch(`/${code}`)).status).toBe(302)
    expect(await command(['health'], env)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('/-/ready answers 503'),
    })
    renameSync(`${file}-elsewhere`, file)
    await eventually('it is ready', () => isReady(service))
    expect(await service.shorten(key, 'https://example.com/after')).toHaveLength(8)
    expect(await service.end('SIGTERM')).toBe(0)
    const events = (await linesOf(service)).map(({ event }) => event)
    expect(events.filter((event) => event.startsWith('data.'))).toEqual([
      'data.file_replaced',
      'data.file_restored',
    ])
  }
  await using again = await Service.start(env)
  expect(await again.hitCount(code)).toBe(1)
})

test.concurrent.each([0, 100, 4096 + 64])(
  'a hit journal that is cut to %d bytes has its length again before the next hit comes',
  async (bytes) => {
    using folder = temporaryFolder()
    const { env, service: running, code } = await start(folder.path)
    const journal = join(folder.path, 'hits.journal')
    const whole = readFileSync(journal)
    {
      await using service = running
      expect((await service.fetch(`/${code}`)).status).toBe(302)
      // Counted, so that nothing of it is in the journal any more.
      await eventually('it is counted', async () => (await countedHits(service)) === 1)
      truncateSync(journal, bytes)
      await eventually('it is whole', () => Bun.file(journal).size === whole.length)
      for (let i = 0; i < 20; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
      expect(await service.hitCount(code)).toBe(21)
      await service.end('SIGKILL')
      expect((await linesOf(service)).map(({ event }) => event)).toContain('hits.journal_cut')
    }
    await using again = await Service.start(env)
    expect(await again.hitCount(code)).toBe(21)
    expect(readFileSync(journal).subarray(0, 32)).toEqual(whole.subarray(0, 32))
  },
)

async function countedHits(service: Service): Promise<number> {
  const text = await (await service.fetch('/-/metrics')).text()
  return Number(/^hopcode_hits_flushed_total (\d+)$/m.exec(text)?.[1])
}
