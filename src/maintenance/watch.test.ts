import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import { MaintenanceLog } from './watch.ts'

test('the log says once when maintenance begins, when its end moves, and when it is over', () => {
  const lines: string[] = []
  let until: number | undefined = 0
  const mode = {
    until() {
      if (until === 0) throw new Error('no database')
      return until
    },
  }
  const log = createLog({ level: 'info', human: true, write: (line) => lines.push(line) })
  const watch = new MaintenanceLog({ mode, log, intervalMs: 1_000_000 })
  for (const next of [undefined, 1000, 1000, 0, 61_000, undefined, undefined]) {
    until = next
    watch.look()
  }
  watch.close()
  expect(lines.map((line) => line.split(/ +/).slice(2).join(' '))).toEqual([
    'maintenance.on until=1970-01-01T00:00:01.000Z',
    'maintenance.on until=1970-01-01T00:01:01.000Z',
    'maintenance.off',
  ])
})
