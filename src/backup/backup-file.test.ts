import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { temporaryFolder } from '../../test/support/folder.ts'
import { unpackBackup } from './backup-file.ts'

const MIB = 2 ** 20
const PAGE_COUNT_AT = 28

/** A database of one table, and what is appended to it. */
function database(folder: string, more = 0): Buffer {
  const file = join(folder, 'source.db')
  using db = new Database(file)
  db.run('CREATE TABLE a (b)')
  return Buffer.concat([readFileSync(file), Buffer.alloc(more)])
}

async function* chunks(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000)
}

const unpack = (folder: string, bytes: Buffer) =>
  unpackBackup(chunks(bytes), 'x.hopcode', join(folder, 'out.db'))

test('a database is unpacked whole, compressed or not', async () => {
  for (const pack of [zstdCompressSync, (bytes: Buffer) => bytes]) {
    using folder = temporaryFolder()
    const bytes = database(folder.path)
    await unpack(folder.path, pack(bytes))
    expect(readFileSync(join(folder.path, 'out.db')).equals(bytes)).toBe(true)
  }
})

test('a small file that expands to many bytes is refused at the size that its header names', async () => {
  for (const pack of [zstdCompressSync, (bytes: Buffer) => bytes]) {
    using folder = temporaryFolder()
    const bomb = pack(database(folder.path, 200 * MIB))
    await expect(unpack(folder.path, bomb)).rejects.toThrow('is damaged')
    const out = join(folder.path, 'out.db')
    expect(existsSync(out) ? statSync(out).size : 0).toBeLessThan(MIB)
  }
})

test('a damaged header that names more bytes than the disk has is called damaged, and nothing is written', async () => {
  using folder = temporaryFolder()
  const bytes = database(folder.path, 10 * MIB)
  bytes.writeUInt32BE(0xffff_fffe, PAGE_COUNT_AT)
  await expect(unpack(folder.path, zstdCompressSync(bytes))).rejects.toThrow('is damaged')
  const out = join(folder.path, 'out.db')
  expect(existsSync(out) ? statSync(out).size : 0).toBe(0)
})
