import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import { Cluster } from './cluster.ts'
import type { StateEvent } from './events.ts'

const host = (id: string, isLive: boolean) => ({ id, isLive, applied: 1, problem: null })

test.each<[string, Partial<StateEvent> | undefined, boolean]>([
  ['no report has come', undefined, false],
  ['it is alone', { hosts: [] }, true],
  ['it has the first id', { hosts: [host('c', true)] }, true],
  ['another live host has the first id', { hosts: [host('a', true), host('c', true)] }, false],
  ['the host with the first id is away', { hosts: [host('a', false)] }, true],
  ['it does not follow the log', { hosts: [], problem: 'PostgreSQL is away' }, false],
])('whether a host does what one does for all: %s', (_, state, expected) => {
  const { port1, port2 } = new MessageChannel()
  const cluster = new Cluster({ port: port1, log: createLog({ level: 'silent' }) })
  if (state) port1.onmessage?.({ data: { contactMs: 0, ...state } } as never)
  expect(cluster.isFirst('b')).toBe(expected)
  cluster.close()
  port2.close()
})
