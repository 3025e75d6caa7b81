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

test('events below the level are not written', () => {
  const { log, written } = lines({ human: true, level: 'warn' })
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  expect(written.map((line) => line.split(' ').at(-1))).toEqual(['c', 'd'])
})
