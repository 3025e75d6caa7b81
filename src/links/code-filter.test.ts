import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { newCode } from '../lib/code.ts'
import { secureRandom } from '../lib/random.ts'
import { CodeFilter } from './code-filter.ts'

const draw = (count: number) => Array.from({ length: count }, () => newCode(secureRandom))

test('a code that was added is never denied', () => {
  const filter = CodeFilter.forCodes(50_000)
  const generated = draw(50_000)
  const counted = Array.from({ length: 50_000 }, (_, i) => `SALE${String(i).padStart(4, '0')}`)
  for (const code of [...generated, ...counted]) filter.add(code)
  expect([...generated, ...counted].filter((code) => !filter.mayHold(code))).toEqual([])
})

test('at capacity at most two codes in a hundred pass that were not added', () => {
  const filter = CodeFilter.forCodes(100_000)
  for (let i = 0; i < filter.capacity; i++) filter.add(`PROMO${i}`)
  const guesses = [
    ...draw(20_000),
    ...Array.from({ length: 20_000 }, (_, i) => `OMORP${i}`),
    ...Array.from({ length: 20_000 }, (_, i) => `PROMO${filter.capacity + i}`),
  ]
  const passed = guesses.filter((code) => filter.mayHold(code)).length
  expect(passed / guesses.length).toBeLessThan(0.02)
  expect(passed).toBeGreaterThan(0)
})

test('an empty filter holds nothing', () => {
  const filter = CodeFilter.forCodes(1)
  expect(draw(1000).filter((code) => filter.mayHold(code))).toEqual([])
})

test('the memory of one filter is another one’s', () => {
  const one = CodeFilter.forCodes(1000)
  const other = new CodeFilter(one.memory)
  one.add('ABCDEFGH')
  other.add('HGFEDCBA')
  expect([one, other].map((filter) => filter.mayHold('ABCDEFGH'))).toEqual([true, true])
  expect([one, other].map((filter) => filter.mayHold('HGFEDCBA'))).toEqual([true, true])
})

test('two threads may add at the same time, and no bit is lost', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'adder.ts')
  writeFileSync(
    file,
    `import { CodeFilter } from ${JSON.stringify(join(import.meta.dir, 'code-filter.ts'))}
    self.onmessage = ({ data: { memory, go } }) => {
      const filter = new CodeFilter(memory)
      const begun = new Int32Array(go)
      Atomics.store(begun, 0, 1)
      for (let i = 0; i < 40_000; i++) filter.add('THERE' + i)
      self.postMessage('done')
    }`,
  )
  const expected = CodeFilter.forCodes(80_000)
  for (let i = 0; i < 40_000; i++) {
    expected.add(`HERE${i}`)
    expected.add(`THERE${i}`)
  }
  const worker = new Worker(file)
  for (let round = 0; round < 20; round++) {
    const filter = CodeFilter.forCodes(80_000)
    const go = new SharedArrayBuffer(4)
    const done = new Promise((resolve, reject) => {
      worker.onmessage = resolve
      worker.onerror = reject
    })
    worker.postMessage({ memory: filter.memory, go })
    while (Atomics.load(new Int32Array(go), 0) === 0);
    for (let i = 0; i < 40_000; i++) filter.add(`HERE${i}`)
    await done
    expect(Buffer.from(filter.memory).equals(Buffer.from(expected.memory))).toBe(true)
  }
  worker.terminate()
})
