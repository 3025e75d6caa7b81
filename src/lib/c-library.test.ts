import { expect, test } from 'bun:test'
import { closeSync, fsyncSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { pointerTo, releasePages } from './c-library.ts'

const PAGE = 4096
const PAGES = 256

/** Pages of a mapped file that are in this process's memory, and those of them to be written. */
function memoryOf(file: string): { resident: number; dirty: number } {
  const maps = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
  const map = maps.find((text) => text.split('\n', 1)[0]?.endsWith(file)) ?? ''
  const pages = (name: string) =>
    (1024 * Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(map)?.[1])) / PAGE
  return { resident: pages('Rss'), dirty: pages('Shared_Dirty') + pages('Private_Dirty') }
}

test('pages of a mapping are released, and what they hold stays', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'mapped')
  writeFileSync(file, new Uint8Array(PAGES * PAGE).fill(7))
  const descriptor = openSync(file, 'r+')
  fsyncSync(descriptor)
  closeSync(descriptor)
  const mapping = Bun.mmap(file, { shared: true })
  const address = pointerTo(mapping)
  expect(memoryOf(file)).toEqual({ resident: 0, dirty: 0 })
  for (let page = 16; page < 116; page++) mapping[page * PAGE] = 9
  expect(memoryOf(file).dirty).toBeGreaterThanOrEqual(100)
  releasePages({ address, bytes: PAGES * PAGE })
  expect(memoryOf(file).resident).toBe(0)
  expect([mapping[20 * PAGE - 1], mapping[20 * PAGE], mapping[120 * PAGE]]).toEqual([7, 9, 7])
  expect(readFileSync(file)[20 * PAGE]).toBe(9)
})
