import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { readTar, TarError, tarEnd, tarHeader, tarPadding } from './tar.ts'

const MODIFIED = Date.UTC(2026, 2, 1) / 1000

function pack(files: Record<string, string>): Buffer {
  const parts = Object.entries(files).flatMap(([name, text]) => {
    const bytes = Buffer.from(text)
    const { length: size } = bytes
    return [tarHeader({ name, size, modified: MODIFIED }), bytes, tarPadding(size)]
  })
  return Buffer.concat([...parts, tarEnd()])
}

async function* inPieces(bytes: Uint8Array, length: number) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function unpack(bytes: Uint8Array, pieceLength = 1000): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for await (const { name, body } of readTar(inPieces(bytes, pieceLength))) {
    const decoder = new TextDecoder()
    files[name] = ''
    for await (const part of body) files[name] += decoder.decode(part, { stream: true })
  }
  return files
}

const FILES = { one: 'a'.repeat(512), two: '', three: 'c'.repeat(1300) }

test('the system’s tar reads what is written, its modes and times too', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'a.tar')
  writeFileSync(file, pack(FILES))
  const tar = (...words: string[]) => Bun.spawnSync(['tar', ...words], { env: { TZ: 'UTC' } })
  expect(tar('xOf', file, 'three').stdout.toString()).toBe(FILES.three)
  const { stdout, stderr } = tar('tvf', file)
  expect(stderr.toString()).toBe('')
  expect(stdout.toString()).toMatch(/^-rw------- 0\/0 +512 2026-03-01 00:00 one\n/)
})

test.each([1, 7, 512, 4096])('a tar is read back from pieces of %i bytes', async (length) => {
  expect(await unpack(pack(FILES), length)).toEqual(FILES)
})

test.each([8 ** 11 - 1, 8 ** 11, 5 * 2 ** 40])(
  'a size of %i bytes is written and read',
  async (size) => {
    const header = tarHeader({ name: 'big', size, modified: MODIFIED })
    const entries = readTar(inPieces(header, 512))
    const { value } = await entries.next()
    expect(value).toMatchObject({ name: 'big', size, modified: MODIFIED })
  },
)

test('the system’s tar knows a size beyond eleven octal digits', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'a.tar')
  writeFileSync(file, tarHeader({ name: 'big', size: 9 * 2 ** 30, modified: MODIFIED }))
  const { stdout } = Bun.spawnSync(['tar', 'tvf', file])
  expect(stdout.toString()).toContain(` ${9 * 2 ** 30} `)
})

test('every bit of headers, padding and end counts', async () => {
  const good = pack({ one: 'x', two: 'y' })
  for (let at = 0; at < good.length; at++) {
    if (at === 512 || at === 3 * 512) continue
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] as number) ^ (1 << (at % 8))
    await expect(unpack(bytes)).rejects.toThrow(TarError)
  }
})

test('a tar that is cut anywhere is refused', async () => {
  const good = pack({ one: 'x' })
  for (let length = 0; length < good.length; length += 37) {
    await expect(unpack(good.subarray(0, length))).rejects.toThrow('it ends too early')
  }
})
