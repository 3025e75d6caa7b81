import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { maskBomb } from '../../test/support/logos.ts'
import { parseQrOptions } from './options.ts'
import { QrTrials } from './trials.ts'

const TEXT = 'http://hop.test/QWERTYUIOP0123456789'
const OPTIONS = { options: parseQrOptions({}) }
const OVERLOADED = { code: 'overloaded', status: 503 }

/** Trials whose process runs this script in place of the program. */
const trialsOf = (script: string, timeoutMs = 60_000, monotonic = () => 0) =>
  new QrTrials({ command: [process.execPath, '-e', script], text: TEXT, timeoutMs, monotonic })

const ENDLESS = 'for (;;);'

test('a trial that does not end is killed and refused', async () => {
  const trials = trialsOf(ENDLESS, 500)
  expect(await trials.tryLogo(1, new Uint8Array(9))).toEqual({
    problem: 'The logo takes too long to draw. Use simpler shapes, and try again in a minute.',
  })
  expect(await trials.isReadable(2, OPTIONS)).toBe(false)
})

test('an account whose trial was killed gets no other for a minute; other accounts do', async () => {
  let now = 0
  const trials = trialsOf(ENDLESS, 500, () => now)
  await trials.isReadable(1, OPTIONS)
  now = 59_000
  await expect(trials.isReadable(1, OPTIONS)).rejects.toMatchObject({
    ...OVERLOADED,
    headers: { 'retry-after': '1' },
  })
  expect(await trials.isReadable(2, OPTIONS)).toBe(false)
  now = 60_000
  expect(await trials.isReadable(1, OPTIONS)).toBe(false)
})

test('an account has one trial at a time, and at most five trials wait or run', async () => {
  const trials = trialsOf(ENDLESS)
  const waiting = [1, 2, 3, 4, 5].map((account) => trials.isReadable(account, OPTIONS))
  await expect(trials.isReadable(1, OPTIONS)).rejects.toMatchObject(OVERLOADED)
  await expect(trials.isReadable(6, OPTIONS)).rejects.toMatchObject(OVERLOADED)
  // The first one has started.
  await Promise.resolve()
  trials.close()
  const [first, ...others] = await Promise.allSettled(waiting)
  expect(first).toMatchObject({ status: 'fulfilled', value: false })
  for (const other of others) expect(other).toMatchObject({ reason: { code: 'stopping' } })
})

test('the kernel kills a trial that uses too much CPU time, long before its time limit', async () => {
  const command = [process.execPath, join(import.meta.dir, '../main.ts')]
  const trials = new QrTrials({ command, text: TEXT, timeoutMs: 3_600_000 })
  const tried = await trials.tryLogo(1, new TextEncoder().encode(maskBomb))
  expect(tried).toHaveProperty('problem', expect.stringContaining('takes too long to draw'))
}, 600_000)

test('a process that fails is an error', async () => {
  await expect(trialsOf('process.exit(3)').isReadable(1, OPTIONS)).rejects.toThrow('ended with 3')
})

test('the process has no settings in its environment', async () => {
  process.env.HOPCODE_SECRET_OF_TEST = 'secret'
  try {
    const script = 'process.exit(process.env.HOPCODE_SECRET_OF_TEST ? 4 : 5)'
    await expect(trialsOf(script).isReadable(1, OPTIONS)).rejects.toThrow('ended with 5')
  } finally {
    delete process.env.HOPCODE_SECRET_OF_TEST
  }
})
