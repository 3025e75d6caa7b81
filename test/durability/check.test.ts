import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

test('a check while serving exits 0, and 1 with advice when something is wrong', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/check')
  for (let i = 0; i < 5; i++) await service.fetch(`/${code}`)
  await service.fetch(`/cdn/qr/${code}.png`)
  const good = await command(['check'], env)
  expect(good).toMatchObject({ code: 0, err: '' })
  expect(good.out).toContain('1 stored, each of a code')
  expect(good.out).toContain('Not verified: ')
  const image = join(folder.path, 'cdn', 'qr', `${code}.png`)
  writeFileSync(join(folder.path, 'cdn', 'qr', 'NOBODYS1.png'), readFileSync(image))
  chmodSync(join(folder.path, 'secret.key'), 0o644)
  const { code: exit, out } = await command(['check', '--json'], env)
  expect(exit).toBe(1)
  const { ok, findings } = JSON.parse(out)
  expect(ok).toBe(false)
  const problems = findings.filter(({ status }: { status: string }) => status === 'problem')
  expect(problems).toEqual([
    {
      check: 'file modes',
      status: 'problem',
      says: expect.stringContaining('can read or write secret.key'),
      advice: expect.stringContaining('chmod 600'),
    },
  ])
  expect(findings).toContainEqual({
    check: 'images',
    status: 'note',
    says: expect.stringContaining('1 without a code: NOBODYS1.png'),
  })
})

test('a bit that flips in a stored URL is found, by a check and by a restore', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data') }
  const key = await makeAccount(env)
  {
    await using service = await Service.start(env)
    await service.shorten(key, 'https://example.com/flipped-here')
    await service.end('SIGTERM')
  }
  const database = join(folder.path, 'data', 'hopcode.db')
  const bytes = readFileSync(database)
  let flipped = 0
  for (
    let at = bytes.indexOf('flipped-here');
    at >= 0;
    at = bytes.indexOf('flipped-here', at + 1)
  ) {
    bytes[at + 3] = (bytes[at + 3] as number) ^ 1
    flipped++
  }
  expect(flipped).toBeGreaterThan(0)
  writeFileSync(database, bytes)
  const checked = await command(['check'], env)
  expect([checked.code, checked.out]).toEqual([1, expect.stringContaining('1 URLs were changed')])
  const file = join(folder.path, 'flipped.hopcode')
  expect((await command(['backup', file], env)).code).toBe(0)
  const restored = await command(['restore', file], { DATA_DIR: join(folder.path, 'other') })
  expect([restored.code, restored.err]).toEqual([1, expect.stringContaining('1 URLs were changed')])
})

test('a check names what it does not verify, and finds no change there', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const key = await makeAccount(env)
  {
    await using service = await Service.start(env)
    const code = await service.shorten(key, 'https://example.com/unverified')
    await service.fetch(`/${code}`)
    await service.end('SIGTERM')
  }
  {
    using db = new Database(join(folder.path, 'hopcode.db'))
    db.run('UPDATE links SET passcode_hash = randomblob(32)')
    db.run('UPDATE links SET created_at = created_at + 1024')
    db.run('UPDATE hit_totals SET redirects = redirects + 1024')
  }
  const { code, out } = await command(['check'], env)
  expect({ code, end: out.trimEnd().split('\n').slice(-2) }).toEqual({
    code: 0,
    end: [
      expect.stringMatching(
        /^Not verified: .*hashes, times, hit counts, search entries and images/,
      ),
      'All is well.',
    ],
  })
})

test('a check of a folder without a service writes nothing but SQLite’s own companions', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const empty = await command(['check'], env)
  expect(empty.code).toBe(1)
  expect(empty.out).toContain(`${folder.path}/hopcode.db is missing`)
  expect(readdirSync(folder.path)).toEqual([])
  await makeAccount(env)
  const names = [...readdirSync(folder.path), 'hopcode.db-shm', 'hopcode.db-wal']
  const good = await command(['check'], env)
  expect(good).toMatchObject({ code: 0, err: '' })
  expect(names).toEqual(expect.arrayContaining(readdirSync(folder.path)))
  truncateSync(join(folder.path, 'hopcode.db'), 8192)
  const damaged = await command(['check'], env)
  expect(damaged.code).toBe(1)
  expect(damaged.out).toContain('Run "hopcode restore" with a backup')
})
