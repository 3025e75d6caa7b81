import { expect, test } from 'bun:test'
import { parseQrOptions } from './options.ts'
import { QrTrials } from './trials.ts'

const TEXT = 'http://hop.test/QWERTYUIOP0123456789'
const OPTIONS = { options: parseQrOptions({}) }
const OVERLOADED = { code: 'overloaded', status: 503 }

/** Trials whose process runs this script in place of the program. */
const trialsOf = (script: string, timeoutMs = 60_000) =>
  new QrTrials({ command: [process.execPath, '-e', script], text: TEXT, timeoutMs })

const ENDLESS = 'for (;;);'

test('a trial that does not end is killed and refused', async () => {
  const trials = trialsOf(ENDLESS, 500)
  expect(await trials.tryLogo(1, new Uint8Array(9))).toEqual({
    problem: 'The logo takes too long to draw. Use simpler shapes.',
  })
  expect(await trials.isReadable(1, OPTIONS)).toBe(false)
})

test('an account has one trial at a time, and at most two trials wait or run', async () => {
  const trials = trialsOf(ENDLESS)
  const waiting = [trials.isReadable(1, OPTIONS), trials.isReadable(2, OPTIONS)]
  await expect(trials.isReadable(1, OPTIONS)).rejects.toMatchObject(OVERLOADED)
  await expect(trials.isReadable(3, OPTIONS)).rejects.toMatchObject(OVERLOADED)
  // The first one has started.
  await Promise.resolve()
  trials.close()
  expect(await waiting[0]).toBe(false)
  await expect(waiting[1]).rejects.toMatchObject({ code: 'stopping' })
})

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
