import { expect, test } from 'bun:test'
import { diskRefusal, machineFailure } from './disk-refusal.ts'

const withCode = (code: string) => Object.assign(new Error('it failed'), { code })

test.each([
  ['ENOSPC', 'the disk is full'],
  ['SQLITE_READONLY_DBMOVED', 'the file system is read-only'],
  ['SQLITE_IOERR_FSYNC', 'the disk refuses'],
])('%s is a refusal of the disk', (code, reason) => {
  expect(diskRefusal(withCode(code))).toBe(reason)
  expect(machineFailure(withCode(code))).toBe(reason)
})

test.each([
  [withCode('SQLITE_BUSY'), 'another program has locked the database'],
  [withCode('EMFILE'), 'too many files are open: raise the limit (ulimit -n)'],
  [withCode('ENOTDIR'), 'part of the path is a file, not a folder'],
  [withCode('SQLITE_NOMEM'), 'there is not enough memory'],
  [new RangeError('Out of memory'), 'there is not enough memory'],
])('%p is a failure of the machine, and not of the disk', (error, reason) => {
  expect(machineFailure(error)).toBe(reason)
  expect(diskRefusal(error)).toBeUndefined()
})

test('a fault of the program is neither', () => {
  for (const error of [new Error('no code'), new RangeError('Invalid length'), 'text', undefined]) {
    expect(machineFailure(error)).toBeUndefined()
  }
})
