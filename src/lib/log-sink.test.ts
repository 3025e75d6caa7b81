import { afterEach, expect, test } from 'bun:test'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LogSink } from './log-sink.ts'

const DEADLINE_MS = 5000
const undo: (() => void)[] = []

afterEach(() => {
  for (const step of undo.splice(0)) step()
})

function fileOf(flags: string, path = join(tmpdir(), `hopcode-${crypto.randomUUID()}`)) {
  const descriptor = openSync(path, flags)
  undo.push(() => closeSync(descriptor))
  if (!path.startsWith('/dev/')) undo.push(() => rmSync(path))
  return { path, descriptor }
}

test('every line is written, in order and whole', async () => {
  const { path, descriptor } = fileOf('w')
  const sink = new LogSink({ descriptor })
  const lines = Array.from({ length: 2000 }, (_, i) => `${i} ${'ä'.repeat(i % 300)}`)
  for (const [index, line] of lines.entries()) {
    sink.write(line)
    if (index === 1000) await sink.drain(DEADLINE_MS)
  }
  await sink.drain(DEADLINE_MS)
  expect(readFileSync(path, 'utf8')).toBe(`${lines.join('\n')}\n`)
  expect(sink.dropped).toBe(0)
})

test('a full disk drops lines, counts them, and throws nothing', async () => {
  const { descriptor } = fileOf('w', '/dev/full')
  const sink = new LogSink({ descriptor })
  for (let i = 0; i < 5; i++) sink.write('a line')
  await sink.drain(DEADLINE_MS)
  sink.write('another')
  await sink.drain(DEADLINE_MS)
  expect(sink.dropped).toBe(6)
})

test('what waits is bounded, and what is written makes room again', async () => {
  const { path, descriptor } = fileOf('w')
  const sink = new LogSink({ descriptor, waitingMax: 10 })
  sink.write('12345')
  sink.write('67890')
  sink.write('x')
  expect(sink.dropped).toBe(1)
  await sink.drain(DEADLINE_MS)
  sink.write('more')
  await sink.drain(DEADLINE_MS)
  expect(readFileSync(path, 'utf8')).toBe('12345\n67890\nmore\n')
})

test('draining nothing is done at once', async () => {
  await new LogSink({ descriptor: -1 }).drain(DEADLINE_MS)
})
