import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { nameWithoutReplacing, requireRoom, scratchFolder } from './disk.ts'

test('a finished file gets its name, and takes it from no other', () => {
  using folder = temporaryFolder()
  const [one, two, name] = ['one', 'two', 'name'].map((word) => join(folder.path, word)) as [
    string,
    string,
    string,
  ]
  writeFileSync(one, '1')
  writeFileSync(two, '2')
  nameWithoutReplacing(one, name)
  expect(existsSync(one)).toBe(false)
  expect(() => nameWithoutReplacing(two, name)).toThrow(`${name} exists already`)
  expect(readFileSync(name, 'utf8')).toBe('1')
})

test('a scratch folder goes with its work, and takes along what a killed process left', () => {
  using folder = temporaryFolder()
  const left = join(folder.path, '.hopcode-backup-killed')
  mkdirSync(left)
  writeFileSync(join(left, 'hopcode.db'), 'half')
  using running = scratchFolder(folder.path)
  expect(existsSync(left)).toBe(false)
  let path: string
  {
    using other = scratchFolder(folder.path)
    path = other.path
    expect(existsSync(path)).toBe(true)
  }
  expect(existsSync(path)).toBe(false)
  expect(existsSync(running.path)).toBe(true)
})

test('a disk without room is refused with both sizes', () => {
  using folder = temporaryFolder()
  requireRoom(folder.path, 1)
  expect(() => requireRoom(folder.path, 2 ** 60)).toThrow(
    /needs \d{10,} MiB more free space for this: make room/,
  )
})
