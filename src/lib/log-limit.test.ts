import { expect, test } from 'bun:test'
import { MINUTE } from './clock.ts'
import { createLog } from './log.ts'
import { limitLines } from './log-limit.ts'

function open() {
  const lines: Record<string, unknown>[] = []
  const plain = createLog({
    level: 'info',
    human: false,
    write: (line) => lines.push(JSON.parse(line)),
  })
  const time = { now: 0 }
  return { lines, time, log: limitLines(plain, () => time.now) }
}

test('a flood of refused sign-ins costs thirty lines a minute, and the log says how many it left out', () => {
  const { lines, time, log } = open()
  for (let i = 0; i < 1000; i++) log.warn('session.refused', { account_id: 7 })
  expect(lines).toHaveLength(30)
  expect(lines[0]).toMatchObject({ account_id: 7 })
  expect(lines[0]).not.toHaveProperty('suppressed')
  // Each event has a limit of its own, and most have none.
  log.warn('throttle.engaged')
  for (let i = 0; i < 100; i++) log.warn('session.started')
  expect(lines).toHaveLength(131)
  time.now += MINUTE
  log.warn('session.refused', { account_id: 7 })
  expect(lines.at(-1)).toMatchObject({ event: 'session.refused', level: 'warn', suppressed: 970 })
  log.warn('session.refused')
  expect(lines.at(-1)).not.toHaveProperty('suppressed')
})

test('requests that fail while the disk refuses cost a hundred lines a minute, with their causes', () => {
  const { lines, log } = open()
  for (let i = 0; i < 400; i++) log.error('request.failed', { path: '/' }, new Error('full'))
  expect(lines).toHaveLength(100)
  expect(String(lines[99]?.cause)).toContain('full')
})

test('the number of suppressed lines is logged when the service stops', () => {
  const { lines, log } = open()
  for (let i = 0; i < 32; i++) log.warn('session.refused', { network: '192.0.2.0/24' })
  log.close()
  expect(lines).toHaveLength(31)
  expect(lines.at(-1)).toMatchObject({ event: 'session.refused', suppressed: 2 })
  expect(lines.at(-1)).not.toHaveProperty('network')
})
