import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { FolderLock } from '../db/lock.ts'
import {
  asideFile,
  asideName,
  beginRestore,
  decideRestore,
  finishRestore,
  moves,
} from './restore.ts'

const OLD = ['hopcode.db', 'hopcode.db-wal', 'hopcode.db-shm', 'hits.journal', 'secret.key']
const NEW = ['hopcode.db', 'hits.journal', 'secret.key']
const ASIDE = asideName(Date.parse('2026-03-01T12:00:00.000Z'))

function setUp(dataDir: string) {
  for (const name of OLD) writeFileSync(join(dataDir, name), `old ${name}`)
  mkdirSync(join(dataDir, 'cdn', 'qr'), { recursive: true })
  writeFileSync(join(dataDir, 'cdn', 'qr', 'OLDCODE.png'), 'old image')
  const folder = beginRestore(dataDir)
  for (const name of NEW) writeFileSync(join(folder, name), `new ${name}`)
  writeFileSync(asideFile(folder), ASIDE)
}

function expectNew(dataDir: string): void {
  const read = (...path: string[]) => readFileSync(join(dataDir, ...path), 'utf8')
  for (const name of NEW) expect(read(name)).toBe(`new ${name}`)
  for (const name of OLD) expect(read(ASIDE, name)).toBe(`old ${name}`)
  expect(existsSync(join(dataDir, 'hopcode.db-wal'))).toBe(false)
  expect(existsSync(join(dataDir, 'cdn', 'qr', 'OLDCODE.png'))).toBe(false)
  expect(readdirSync(dataDir).filter((name) => name.startsWith('.restore'))).toEqual([])
}

/** How many moves a restore has; counted, so that a new one is interrupted too. */
function countMoves(): number {
  using folder = temporaryFolder()
  setUp(folder.path)
  decideRestore(folder.path)
  return [...moves(folder.path)].length
}

test('before its decision a restore has changed nothing, and is no more at the next', () => {
  using folder = temporaryFolder()
  setUp(folder.path)
  expect(finishRestore(folder.path)).toBe(false)
  for (const name of OLD) {
    expect(readFileSync(join(folder.path, name), 'utf8')).toBe(`old ${name}`)
  }
  expect(readdirSync(beginRestore(folder.path))).toEqual([])
})

test.each(Array.from({ length: countMoves() + 1 }, (_, made) => made))(
  'a restore interrupted after %i moves is completed',
  (made) => {
    using folder = temporaryFolder()
    setUp(folder.path)
    decideRestore(folder.path)
    const interrupted = moves(folder.path)
    for (let move = 0; move < made; move++) interrupted.next()
    expect(finishRestore(folder.path)).toBe(true)
    expectNew(folder.path)
    expect(finishRestore(folder.path)).toBe(false)
  },
)

test('an empty folder gets no folder for old files', () => {
  using folder = temporaryFolder()
  const staged = beginRestore(folder.path)
  for (const name of NEW) writeFileSync(join(staged, name), `new ${name}`)
  writeFileSync(asideFile(staged), ASIDE)
  decideRestore(folder.path)
  finishRestore(folder.path)
  expect(readdirSync(folder.path).sort()).toEqual([...NEW, 'serving.lock', 'serving.pid'].sort())
})

test('nobody goes on with a restore that is still running', () => {
  using folder = temporaryFolder()
  setUp(folder.path)
  decideRestore(folder.path)
  const lock = FolderLock.claim(folder.path)
  expect(() => finishRestore(folder.path)).toThrow('already')
  lock.release()
  expect(finishRestore(folder.path)).toBe(true)
})
