import { expect, test } from 'bun:test'
import { MINUTE } from '../lib/clock.ts'
import { createLog } from '../lib/log.ts'
import { SecurityLog } from './security-log.ts'

const ORIGIN = { network: '192.0.2.0/24', requestId: 'abc-1' }

function open() {
  const lines: Record<string, unknown>[] = []
  const log = createLog({
    level: 'info',
    human: false,
    write: (line) => lines.push(JSON.parse(line)),
  })
  const time = { now: 0 }
  return { lines, time, security: new SecurityLog({ log, monotonic: () => time.now }) }
}

test('a flood of refused sign-ins costs thirty lines a minute, and the log says how many it left out', () => {
  const { lines, time, security } = open()
  for (let i = 0; i < 1000; i++) security.record('session.refused', ORIGIN, { accountId: 7 })
  expect(lines).toHaveLength(30)
  expect(lines[0]).not.toHaveProperty('suppressed')
  // Of another event, and of one that needs an account, none is left out.
  security.record('throttle.engaged', ORIGIN)
  for (let i = 0; i < 100; i++) security.record('session.started', ORIGIN, { accountId: 7 })
  expect(lines).toHaveLength(131)
  time.now += MINUTE
  security.record('session.refused', ORIGIN)
  expect(lines.at(-1)).toMatchObject({ event: 'session.refused', level: 'warn', suppressed: 970 })
  security.record('session.refused', ORIGIN)
  expect(lines.at(-1)).not.toHaveProperty('suppressed')
})

test('what a flood left out is told when the service stops', () => {
  const { lines, security } = open()
  for (let i = 0; i < 32; i++) security.record('session.refused', ORIGIN)
  security.close()
  expect(lines).toHaveLength(31)
  expect(lines.at(-1)).toMatchObject({ event: 'session.refused', suppressed: 2 })
  expect(lines.at(-1)).not.toHaveProperty('network')
})
