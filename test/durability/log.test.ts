import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { VERSION } from '../../src/lib/version.ts'
import { makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** Standard error of the compiled program: whatever becomes of it, the service goes on. */

/** About four times what a pipe holds, at one line a redirect. */
const REDIRECTS = 1200
const ANSWER_WITHIN_MS = 10_000

const sinks = [
  {
    name: 'a pipe that nobody reads',
    // Open for reading too, so that a write waits instead of failing.
    words: 'mkfifo "$FIFO" && exec 3<>"$FIFO" && exec "$0" 2>&3',
  },
  { name: 'a full disk', words: 'exec "$0" 2>/dev/full' },
  {
    name: 'a pipe whose reader has gone',
    words: 'mkfifo "$FIFO" && exec 3<>"$FIFO" 4>"$FIFO" 3<&- && exec "$0" 2>&4',
  },
  { name: 'closed', words: 'exec "$0" 2>&-' },
]

test.each(sinks)('with standard error as $name it serves, counts and stops', async ({ words }) => {
  using folder = temporaryFolder()
  const data = { DATA_DIR: join(folder.path, 'data') }
  const key = await makeAccount(data)
  const env = {
    ...data,
    FIFO: join(folder.path, 'fifo'),
    PATH: String(process.env.PATH),
    LOG_REQUESTS: 'all',
    ANONYMOUS_READS_PER_MINUTE: '0',
    ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
  }
  await using service = await Service.start(env, ['sh', '-c', words])
  const code = await service.shorten(key, 'https://example.com/start')
  for (let sent = 0; sent < REDIRECTS; sent++) {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const { status } = await service.fetch(`/${code}`, { signal })
    if (status !== 302) throw new Error(`redirect ${sent} answers ${status}`)
  }
  expect(await service.hitCount(code)).toBe(REDIRECTS)
  expect((await service.fetch('/-/ready')).status).toBe(200)
  expect(await service.end('SIGTERM')).toBe(0)
  await using again = await Service.start(data)
  expect(await again.hitCount(code)).toBe(REDIRECTS)
})

test('the log of a whole life is complete when the program has ended', async () => {
  using folder = temporaryFolder()
  await using service = await Service.start({ DATA_DIR: folder.path, LOG_REQUESTS: 'all' })
  for (let i = 0; i < 50; i++) await service.fetch('/NOBODY99')
  expect(await service.end('SIGTERM')).toBe(0)
  const lines = (await service.errors).trimEnd().split('\n')
  const events = lines.map((line) => JSON.parse(line).event)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: 'service.started', version: VERSION })
  // The lines of the last redirects come from other threads.
  expect(events.filter((event) => event !== 'request').slice(-2)).toEqual([
    'service.stopping',
    'service.stopped',
  ])
  expect(events.at(-1)).toBe('service.stopped')
  expect(lines.filter((line) => line.includes('NOBODY99'))).toHaveLength(50)
})
