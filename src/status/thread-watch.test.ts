import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import { ThreadWatch } from './thread-watch.ts'

function watched() {
  const lines: string[] = []
  const time = { now: 1000 }
  const writer = { batchMs: 0 }
  const reader = { batchMs: 0 }
  const log = createLog({ level: 'info', human: false, write: (line) => lines.push(line) })
  const threads = { writer, reader }
  const watch = new ThreadWatch({ threads, log, monotonic: () => time.now })
  /** Time passes, with the regular checks; a thread that is busy stays busy. */
  const pass = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 500) {
      time.now += 500
      for (const thread of [writer, reader]) if (thread.batchMs > 0) thread.batchMs += 500
      watch.check()
    }
  }
  const events = () =>
    lines.map((line) => {
      const { event, thread, level } = JSON.parse(line) as Record<string, unknown>
      return [level, event, thread]
    })
  return { watch, writer, reader, time, pass, events, [Symbol.dispose]: () => watch.close() }
}

test('a call of more than five seconds hangs, is logged once, and recovers with its answer', () => {
  using its = watched()
  const { watch, writer, pass, events } = its
  writer.batchMs = 1
  pass(4500)
  expect([watch.hangingThread, watch.isHanging('writer')]).toEqual([undefined, false])
  pass(5000)
  expect([watch.hangingThread, watch.isHanging('writer')]).toEqual(['writer', true])
  expect(watch.isHanging('reader')).toBe(false)
  expect(events()).toEqual([['error', 'thread.hanging', 'writer']])
  writer.batchMs = 0
  expect(watch.hangingThread).toBeUndefined()
  pass(2000)
  expect(events()).toEqual([
    ['error', 'thread.hanging', 'writer'],
    ['info', 'thread.recovered', 'writer'],
  ])
})

test('two threads that hang are logged apart', () => {
  using its = watched()
  its.writer.batchMs = 1
  its.reader.batchMs = 1
  its.pass(6000)
  its.reader.batchMs = 0
  its.pass(500)
  expect(its.watch.hangingThread).toBe('writer')
  expect(its.events()).toEqual([
    ['error', 'thread.hanging', 'writer'],
    ['error', 'thread.hanging', 'reader'],
    ['info', 'thread.recovered', 'reader'],
  ])
})

test('calls that follow each other without a pause do not hang', () => {
  using its = watched()
  for (let call = 0; call < 10; call++) {
    its.writer.batchMs = 1
    its.pass(3000)
  }
  expect(its.events()).toEqual([])
})

test('a process that was stopped as a whole has no hanging thread when it goes on', () => {
  using its = watched()
  its.writer.batchMs = 1
  its.pass(1000)
  its.time.now += 60_000
  its.writer.batchMs += 60_000
  expect(its.watch.isHanging('writer')).toBe(false)
  its.pass(4500)
  expect(its.watch.isHanging('writer')).toBe(false)
  its.pass(1000)
  expect(its.watch.isHanging('writer')).toBe(true)
})
