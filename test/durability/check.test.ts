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
  expect(good.out).toContain('1 stored, each of a code; 1 read, each whole')
  const image = join(folder.path, 'cdn', 'qr', `${code}.png`)
  const bytes = readFileSync(image)
  writeFileSync(image, bytes.subarray(0, -20))
  writeFileSync(join(folder.path, 'cdn', 'qr', 'NOBODYS1.png'), bytes)
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
    {
      check: 'images',
      status: 'problem',
      says: `1 damaged: ${code}.png`,
      advice: expect.stringContaining('Delete these files'),
    },
  ])
  expect(findings).toContainEqual({
    check: 'images',
    status: 'note',
    says: expect.stringContaining('1 of no code: NOBODYS1.png'),
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
  const names = ['hopcode.db', 'hopcode.db-shm', 'hopcode.db-wal', 'secret.key']
  expect(names).toEqual(expect.arrayContaining(readdirSync(folder.path)))
  const good = await command(['check'], env)
  expect(good).toMatchObject({ code: 0, err: '' })
  expect(names).toEqual(expect.arrayContaining(readdirSync(folder.path)))
  truncateSync(join(folder.path, 'hopcode.db'), 8192)
  const damaged = await command(['check'], env)
  expect(damaged.code).toBe(1)
  expect(damaged.out).toContain('restore the last good backup')
})
