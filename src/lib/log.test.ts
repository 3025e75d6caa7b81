import { expect, test } from 'bun:test'
import { createLog } from './log.ts'

function lines(options: { human: boolean; level?: 'warn' }) {
  const written: string[] = []
  const log = createLog({
    level: 'info',
    ...options,
    write: (line) => written.push(line),
    now: () => Date.UTC(2026, 2, 1, 12),
  })
  return { log, written }
}

test('for machines an event is one line of JSON, its cause included', () => {
  const { log, written } = lines({ human: false })
  log.error('request.failed', { path: '/a\nb' }, new Error('no\ndisk'))
  expect(written).toHaveLength(1)
  expect(written[0]).not.toContain('\n')
  expect(JSON.parse(written[0] ?? '')).toMatchObject({
    time: '2026-03-01T12:00:00.000Z',
    level: 'error',
    event: 'request.failed',
    path: '/a\nb',
    cause: expect.stringContaining('no\ndisk'),
  })
})

test('for a person an event is one line of text', () => {
  const { log, written } = lines({ human: true })
  log.info('hits.recovered', { hits: 3 })
  expect(written).toEqual(['12:00:00 info  hits.recovered hits=3'])
})

test.each([true, false])('a field without a value is left out, for a person (%p) too', (human) => {
  const { log, written } = lines({ human })
  log.info('request', { status: 200, request_id: undefined })
  expect(written).toHaveLength(1)
  expect(written[0]).not.toContain('request_id')
})

test('events below the level are not written', () => {
  const { log, written } = lines({ human: true, level: 'warn' })
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  expect(written.map((line) => line.split(' ').at(-1))).toEqual(['c', 'd'])
})

/** What anybody may send in a path or a header to forge or hide an event. */
const HOSTILE = [
  'a\n{"level":"info","event":"forged"}',
  'a\r\n12:00:00 info  forged',
  'a\u2028forged',
  'a\u001b[2Jforged',
  'a\u009b2Jforged',
  'a\u202eforged',
  'a\u0000\u007f\ud800',
  'a\u{e0001}forged',
]

test.each(HOSTILE)(
  'no text of a caller starts a line or reaches the terminal as a command: %j',
  (text) => {
    for (const human of [true, false]) {
      const { log, written } = lines({ human })
      log.warn('request', { path: text })
      log.error('request.failed', { path: text }, new Error(text))
      expect(written).toHaveLength(2)
      const shown = written.flatMap((line) => line.split('\n'))
      for (const line of shown) expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      const events = shown.filter((line) => !line.startsWith('    '))
      expect(events).toHaveLength(2)
      if (human) continue
      for (const line of events) expect(JSON.parse(line).path).toBe(text)
    }
  },
)

test('a text that could be taken for another field stands in quotes', () => {
  const { log, written } = lines({ human: true })
  log.info('request', { path: '/a level=error', empty: '' })
  expect(written).toEqual(['12:00:00 info  request path="/a level=error" empty=""'])
})

test('a text has an end, however long a caller makes it', () => {
  const { log, written } = lines({ human: false })
  log.error('request.failed', { path: 'x'.repeat(1e6) }, 'y'.repeat(1e6))
  expect(written[0]?.length).toBeLessThan(10_000)
  expect(JSON.parse(written[0] ?? '').path).toEndWith('x…')
})

test('fields of the first line are in the first line that is written, whichever it is', () => {
  const lines: string[] = []
  const write = (line: string) => lines.push(line)
  const log = createLog({ level: 'warn', human: false, first: { version: '1.2.3' }, write })
  log.info('left out')
  log.warn('first', { a: 1 })
  log.error('second')
  const fields = lines.map((line) => JSON.parse(line))
  expect(fields).toEqual([
    expect.objectContaining({ event: 'first', version: '1.2.3', a: 1 }),
    expect.not.objectContaining({ version: '1.2.3' }),
  ])
})
