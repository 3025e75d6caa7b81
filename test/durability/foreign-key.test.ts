import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolderInMemory as temporaryFolder } from '../support/folder.ts'

/** A secret.key that is whole, and belongs to another database. */

const BASE_URL = 'http://hop.test'
const FOREIGN = /secret\.key is (the key|that) of another database/

/** Two data folders with an account each. */
async function twoFolders(path: string) {
  const one = { DATA_DIR: join(path, 'one'), BASE_URL }
  const other = { DATA_DIR: join(path, 'other'), BASE_URL }
  const key = await makeAccount(one)
  await makeAccount(other)
  return { one, other, key }
}

const keyFile = ({ DATA_DIR }: { DATA_DIR: string }) => join(DATA_DIR, 'secret.key')

async function expectRefusal(args: readonly string[], env: Record<string, string>) {
  const { code, out, err } = await command(args, env)
  expect({ args, code, out }).toEqual({ args, code: 1, out: '' })
  expect(err).toStartWith('hopcode: ')
  expect(err).toMatch(FOREIGN)
  expect(err.trim().split('\n')).toHaveLength(1)
}

test('the key of another database is refused by the start, by commands, backup and check', async () => {
  using folder = temporaryFolder()
  const { one, other, key } = await twoFolders(folder.path)
  const own = readFileSync(keyFile(one))
  copyFileSync(keyFile(other), keyFile(one))
  const account = ['account', 'create', '--email', 'b@example.com', '--plan', 'free']
  for (const args of [['serve'], account, ['backup', join(folder.path, 'backup.hopcode')]]) {
    await expectRefusal(args, { ...one, PORT: '0' })
  }
  const checked = await command(['check'], one)
  expect(checked.code).toBe(1)
  expect(checked.out).toMatch(FOREIGN)
  await Bun.write(keyFile(one), own)
  await using service = await Service.start(one)
  expect(await service.shorten(key, 'https://example.com/own')).toHaveLength(8)
})

test('a backup with the key of another database is not restored', async () => {
  using folder = temporaryFolder()
  const { one, other } = await twoFolders(folder.path)
  const file = join(folder.path, 'one.hopcode')
  expect(await command(['backup', file], one)).toMatchObject({ code: 0 })
  // Uncompressed, a backup is restored too.
  const forged = join(folder.path, 'forged.db')
  await Bun.write(forged, Bun.zstdDecompressSync(readFileSync(file)))
  {
    using db = new Database(forged)
    const otherKey = readFileSync(keyFile(other), 'utf8')
    db.query(`UPDATE backup SET value = ? WHERE name = 'secret.key'`).run(otherKey)
  }
  const before = readFileSync(keyFile(one))
  await expectRefusal(['restore', forged], one)
  expect(readFileSync(keyFile(one))).toEqual(before)
  expect(await command(['restore', file], one)).toMatchObject({ code: 0 })
})

test('a folder of an earlier release learns its key at the first start, and keeps it', async () => {
  using folder = temporaryFolder()
  const { one, other, key } = await twoFolders(folder.path)
  {
    using db = new Database(join(one.DATA_DIR, 'hopcode.db'))
    db.run("DELETE FROM settings WHERE name = 'secret_key_fingerprint'")
  }
  {
    await using service = await Service.start(one)
    expect(await service.shorten(key, 'https://example.com/own')).toHaveLength(8)
    expect(await service.end('SIGTERM')).toBe(0)
  }
  copyFileSync(keyFile(other), keyFile(one))
  await expectRefusal(['serve'], one)
})

test('while there is no account, a lost key is made anew and the folder goes on', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL }
  {
    await using service = await Service.start(env)
    await service.end('SIGTERM')
  }
  rmSync(keyFile(env))
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  expect(await service.shorten(key, 'https://example.com/fresh')).toHaveLength(8)
})
