import { expect } from 'bun:test'
import { join } from 'node:path'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { eventually } from '../support/app.ts'
import { command, makeAccount, Service } from '../support/binary.ts'
import { testWith } from '../support/tools.ts'
import { SmallDisk } from './lib/small-disk.ts'

/** A start on a disk without room: redirects must not wait until somebody makes some. */

const testMounted = testWith('the right to mount a file system')
const KIB = 1024
const URL_BEFORE = 'https://example.com/before'

/** A folder with an account, a link and five hits, on a disk of its own. */
async function prepare(disk: SmallDisk, signal: 'SIGTERM' | 'SIGKILL') {
  const env = { DATA_DIR: join(disk.path, 'data'), ANONYMOUS_READS_PER_MINUTE: '0' }
  const key = await makeAccount(env)
  JournalFile.open(join(env.DATA_DIR, 'hits.journal'), 1024).close()
  await using service = await Service.start({ ...env, HIT_FLUSH_MS: '60000' })
  const code = await service.shorten(key, URL_BEFORE)
  for (let i = 0; i < 5; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
  await service.end(signal)
  return { env, key, code }
}

/** How many of the sizes below are tried. `npm run test:durability` tries more. */
const SIZES = Number(process.env.FULL_DISK_DISKS ?? 2)
const FREE_KIB = [0, 16, 4, 8, 32].slice(0, SIZES)

const CASES = (['SIGTERM', 'SIGKILL'] as const).flatMap((signal) =>
  FREE_KIB.map((kib) => ({ signal, kib })),
)

testMounted.each(CASES)(
  'a service that ended by $signal starts with $kib KiB free, redirects, and recovers when there is room',
  async ({ signal, kib }) => {
    using disk = new SmallDisk(16)
    const { env, key, code } = await prepare(disk, signal)
    disk.fill(kib * KIB)
    {
      await using service = await Service.start({ ...env, HIT_FLUSH_MS: '20' })
      for (let i = 0; i < 5; i++) {
        const answer = await service.fetch(`/${code}`)
        expect([answer.status, answer.headers.get('location')]).toEqual([302, URL_BEFORE])
      }
      expect(await service.hitCount(code)).toBe(10)
      disk.fill()
      // A smaller write in between, such as counted hits, may still fit.
      await eventually('it is not ready', async () => {
        const refused = await service.post('/api/shorten', key, { url: 'https://example.com/more' })
        expect(refused.status).toBe(500)
        return (await service.fetch('/-/ready')).status === 503
      })
      expect((await service.fetch('/-/live')).status).toBe(200)

      disk.empty()
      await eventually('it is ready', async () => (await service.fetch('/-/ready')).ok)
      expect(await service.shorten(key, 'https://example.com/after')).toHaveLength(8)
      expect(await service.hitCount(code)).toBe(10)
      expect(await service.end('SIGTERM')).toBe(0)
      const events = (await service.errors).split('\n').filter((line) => line.startsWith('{'))
      expect(events.length).toBeLessThan(12)
    }
    await using again = await Service.start(env)
    expect(await again.hitCount(code)).toBe(10)
  },
)

testMounted(
  'kill -9 while the disk is full, and a start on it: every hit is counted once there is room',
  async () => {
    using disk = new SmallDisk(16)
    const { env, code } = await prepare(disk, 'SIGKILL')
    disk.fill()
    for (let round = 1; round <= 3; round++) {
      await using service = await Service.start({ ...env, HIT_FLUSH_MS: '20' })
      for (let i = 0; i < 5; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
      expect(await service.hitCount(code)).toBe(5 + 5 * round)
      await service.end('SIGKILL')
    }
    disk.empty()
    await using service = await Service.start(env)
    expect(await service.hitCount(code)).toBe(20)
  },
)

testMounted('a first start without room ends with one line that says so', async () => {
  using disk = new SmallDisk(1)
  disk.fill(8 * KIB)
  for (const args of [
    ['serve'],
    ['account', 'create', '--email', 'a@example.com', '--plan', 'free'],
  ]) {
    const { code, out, err } = await command(args, {
      DATA_DIR: join(disk.path, 'data'),
      BASE_URL: 'http://hop.test',
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toStartWith('hopcode: ')
    expect(err).toContain('the disk is full')
    expect(err.trim().split('\n')).toHaveLength(1)
  }
})

testMounted('a start on a read-only file system ends with one line that says so', async () => {
  using disk = new SmallDisk(16)
  const { env } = await prepare(disk, 'SIGTERM')
  disk.remount('ro')
  for (const args of [
    ['serve'],
    ['account', 'create', '--email', 'a@example.com', '--plan', 'free'],
  ]) {
    const { code, out, err } = await command(args, { ...env, BASE_URL: 'http://hop.test' })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain('the file system is read-only')
    expect(err.trim().split('\n')).toHaveLength(1)
  }
})
