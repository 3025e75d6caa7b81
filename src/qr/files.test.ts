import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { QrFiles, retireImages } from './files.ts'

const ONE = Uint8Array.of(1, 1, 1)
const TWO = Uint8Array.of(2, 2)

test('an image is stored as <code>.png, and writing it again replaces it', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  files.write('ABC123', ONE)
  expect(files.path('ABC123')).toBe(join(folder.dir, 'ABC123.png'))
  expect(readFileSync(files.path('ABC123'))).toEqual(Buffer.from(ONE))
  files.write('ABC123', TWO)
  expect(readFileSync(files.path('ABC123'))).toEqual(Buffer.from(TWO))
  expect(folder.names()).toEqual(['ABC123.png'])
})

test('asking for a path touches no disk', async () => {
  await using folder = await testFolder()
  new QrFiles(folder.dir).path('ABC123')
  expect(existsSync(folder.dir)).toBe(false)
})

test('removing an image removes it alone, and removing one that is absent is fine', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  files.write('ABC123', ONE)
  files.write('ABC1234', TWO)
  files.remove('ABC123')
  files.remove('ABC123')
  files.remove('NEVER0')
  expect(folder.names()).toEqual(['ABC1234.png'])
})

const notCodes = [
  '',
  'ABC12',
  'ABCDEFGHIJKLMNOPQRSTU',
  'abc123',
  'ABC-123',
  'ABC123\n',
  'ABC123\0',
  '../../ETC',
  '..\\..\\ETC',
  '/ETC/PASSWD',
  '.UNFINISHED',
  'ÄÖÜ123',
].map((text) => ({ name: JSON.stringify(text), text }))

test.each(notCodes)('$name is no code and reaches no disk', async ({ text }) => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  expect(() => files.path(text)).toThrow('assertion failed')
  expect(() => files.write(text, ONE)).toThrow('assertion failed')
  expect(() => files.remove(text)).toThrow('assertion failed')
  expect(folder.names()).toEqual([])
})

test('a write that fails leaves the earlier image and nothing unfinished', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  files.write('ABC123', ONE)
  mkdirSync(files.path('FOLDER'))
  expect(() => files.write('FOLDER', TWO)).toThrow()
  expect(folder.names()).toEqual(['ABC123.png', 'FOLDER.png'])
  expect(readFileSync(files.path('ABC123'))).toEqual(Buffer.from(ONE))
})

test('an image can be written after somebody deleted the whole folder', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  rmSync(folder.dir, { recursive: true })
  files.write('ABC123', ONE)
  expect(folder.names()).toEqual(['ABC123.png'])
})

test('at any moment of a write, and after a kill, the final name holds a whole image', async () => {
  await using folder = await testFolder()
  const length = 8 << 20
  const files = new QrFiles(folder.dir)
  const expectWhole = () => {
    const image = readFileSync(files.path('ABC123'))
    expect(image.length).toBe(length)
    expect(image.equals(Buffer.alloc(length, image[0]))).toBe(true)
  }
  const writer = Bun.spawn([process.execPath, '-e', endlessWriter(folder.dir, length)])
  try {
    // The first word comes after the first image: from then on a write is always under way.
    await writer.stdout.getReader().read()
    for (let look = 0; look < 40; look++) expectWhole()
  } finally {
    writer.kill('SIGKILL')
    await writer.exited
  }
  expectWhole()
  await files.open()
  expect(folder.names()).toEqual(['ABC123.png'])
}, 30_000)

test('what a kill left unfinished is not in the way', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  writeFileSync(join(folder.dir, '.unfinished'), 'half')
  await files.open()
  files.write('ABC123', ONE)
  expect(folder.names()).toEqual(['ABC123.png'])
  expect(readFileSync(files.path('ABC123'))).toEqual(Buffer.from(ONE))
})

test('from the moment images are retired no old one is found, and new ones are kept', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  await files.open()
  const codes = Array.from({ length: 300 }, (_, n) => `CODE${n}00`)
  for (const code of codes) files.write(code, ONE)

  retireImages(folder.dir)
  expect(codes.filter((code) => existsSync(files.path(code)))).toEqual([])
  files.write('CODE000', TWO)
  await files.open()
  expect(folder.names()).toEqual(['CODE000.png'])
  expect(readFileSync(files.path('CODE000'))).toEqual(Buffer.from(TWO))
  expect(readdirSync(folder.parent)).toEqual(['qr'])
})

test('images can be retired while earlier ones are still being deleted, and with none there', async () => {
  await using folder = await testFolder()
  const files = new QrFiles(folder.dir)
  retireImages(folder.dir)
  files.write('ABC123', ONE)
  retireImages(folder.dir)
  const opened = files.open()
  retireImages(folder.dir)
  await Promise.all([opened, files.open()])
  expect(folder.names()).toEqual([])
  expect(readdirSync(folder.parent)).toEqual(['qr'])
})

test('starting deletes images whose deletion a crash cut short, and nothing else beside', async () => {
  await using folder = await testFolder()
  mkdirSync(join(folder.parent, 'qr.retired-before-the-crash', '.unfinished'), { recursive: true })
  writeFileSync(join(folder.parent, 'qr.retired-before-the-crash', 'ABC123.png'), ONE)
  mkdirSync(join(folder.parent, 'qr-backup'))
  mkdirSync(join(folder.parent, 'logos'))
  await new QrFiles(folder.dir).open()
  expect(readdirSync(folder.parent).sort()).toEqual(['logos', 'qr', 'qr-backup'])
})

test('the folder is whole again after a crash in the middle of retiring', async () => {
  await using folder = await testFolder()
  mkdirSync(join(folder.parent, 'qr.retired-just-now'), { recursive: true })
  const files = new QrFiles(folder.dir)
  await files.open()
  files.write('ABC123', ONE)
  expect(folder.names()).toEqual(['ABC123.png'])
})

async function testFolder() {
  const parent = await mkdtemp(join(tmpdir(), 'hopcode-qr-'))
  const dir = join(parent, 'qr')
  return {
    parent,
    dir,
    names: () => readdirSync(dir).sort(),
    [Symbol.asyncDispose]: () => rm(parent, { recursive: true, force: true }),
  }
}

/**
 * A program that stores one image over and over, in turn all ones and all twos, and reports each.
 */
function endlessWriter(dir: string, length: number): string {
  return `
    import { QrFiles, retireImages } from ${JSON.stringify(join(import.meta.dir, 'files.ts'))}
    const files = new QrFiles(${JSON.stringify(dir)})
    await files.open()
    const images = [1, 2].map((byte) => new Uint8Array(${length}).fill(byte))
    for (;;) for (const image of images) {
      files.write('ABC123', image)
      process.stdout.write('.')
    }`
}
