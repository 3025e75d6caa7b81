import { afterEach } from 'bun:test'
import { ClientAddress, clientIp } from '../../src/hot/client-address.ts'
import { ControlServer } from '../../src/http/control-server.ts'
import { monotonicClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { AnswerQueue } from '../../src/redirect/answer-queue.ts'
import {
  type Connection,
  type ConnectionContext,
  listenForClients,
} from '../../src/redirect/connection.ts'
import { ConnectionLimits, limitsPerThread } from '../../src/redirect/connection-limits.ts'
import { internalError } from '../../src/redirect/responses.ts'
import { Conversation } from './conversation.ts'

/** Connections of a redirect thread, with a server on the control thread. */

export const CODE = 'SPRING26'
/** A request for this one throws. */
export const BROKEN = 'BROKEN26'
export const LANDING = 'https://example.com/'

export const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

/** A listener that answers requests for `CODE`, and a control thread that answers with `answer`. */
export function serve(
  answer: (request: Request) => Response | Promise<Response>,
  {
    location = LANDING,
    limits: threadLimits = limitsPerThread(10_000, 1),
    monotonic = monotonicClock,
  } = {},
) {
  const lines: string[] = []
  const log = createLog({ level: 'error', human: false, write: (line) => lines.push(line) })
  const control = new ControlServer(answer, log)
  const followed: string[] = []
  const follow: ConnectionContext['follow'] = ({ text }, { client }) => {
    if (text === BROKEN) throw new Error('a bug')
    if (text !== CODE) return undefined
    followed.push(clientIp(client))
    return { status: 302, headers: { Location: location }, body: '' }
  }
  const failures: unknown[] = []
  const limits = new ConnectionLimits<Connection>(threadLimits, () => {})
  const context: ConnectionContext = {
    follow,
    controlPort: control.port,
    peers: control.peers,
    limits,
    hasDomains: () => false,
    answers: new AnswerQueue(monotonic),
    address: new ClientAddress([]),
    fail: (exception) => {
      failures.push(exception)
      return internalError('id')
    },
    garbageBytes: 0,
    now: 0,
    dateOverTls: '',
    date: 'Sun, 01 Mar 2026 12:00:00 GMT',
    health: { isStopping: false },
  }
  const listener = listenForClients({ hostname: '127.0.0.1', port: 0 }, context)
  opened.push(
    () => listener.stop(true),
    () => control.close(),
  )
  const url = `http://127.0.0.1:${listener.port}`
  return { url, context, control, followed, lines, failures }
}

export const connect = (url: string) => Conversation.open(url)
export const head = (line: string, ...more: string[]) =>
  [`${line} HTTP/1.1`, 'Host: a', ...more, '', ''].join('\r\n')
export const FOLLOW = head(`GET /${CODE}`)
