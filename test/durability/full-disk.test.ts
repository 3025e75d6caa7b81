import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/**
 * The kernel refuses to let any file grow past a limit (RLIMIT_FSIZE), as a full disk does: the
 * write fails while the process lives on. The limit can be lifted while the service runs.
 */
const LIMIT_KIB = 1024
const LIMITED = ['bash', '-c', `trap '' XFSZ; ulimit -S -f ${LIMIT_KIB}; exec "$0" "$@"`]

test('a disk that refuses writes: writes are 500 with request_id, redirects go on, and the end of it ends it', async () => {
  using folder = temporaryFolder()
  const env = {
    ...unlimited(folder.path),
    HIT_FLUSH_MS: '20',
  }
  const key = await makeAccount(env)
  {
    // The journal is made whole before the limit: it is larger than the limit allows.
    await using first = await Service.start(env)
    expect(await first.end('SIGTERM')).toBe(0)
  }
  await using service = await Service.start(env, LIMITED)
  const code = await service.shorten(key, 'https://example.com/before')
  const url = `https://example.com/${'x'.repeat(8000)}`
  const acknowledged: string[] = []
  let refused: Response | undefined
  for (let i = 0; i < 500 && !refused; i++) {
    const response = await service.post('/api/shorten', key, { url: `${url}${i}` })
    if (response.ok) acknowledged.push(((await response.json()) as { code: string }).code)
    else refused = response
  }
  expect(refused?.status).toBe(500)
  const body = await refused?.json()
  expect(body).toEqual({ error: 'Internal server error', request_id: expect.any(String) })
  expect(refused?.headers.get('x-request-id')).toBe((body as { request_id: string }).request_id)
  expect(statSync(join(folder.path, 'hopcode.db-wal')).size).toBeLessThanOrEqual(LIMIT_KIB * 1024)

  // From here on not even a small write finds room.
  limitFiles(service, 4096)
  for (let i = 0; i < 200; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
  expect(await service.hitCount(code)).toBe(200)
  await untilStatus(service, 503)

  limitFiles(service, 'unlimited')
  await untilStatus(service, 200)
  const after = await service.shorten(key, 'https://example.com/after')
  for (const known of [code, after, ...acknowledged]) {
    expect((await service.fetch(`/${known}`)).status).toBe(302)
  }
  expect(await service.hitCount(code)).toBe(201)
  expect(await service.end('SIGTERM')).toBe(0)
})

/** Changes how large a file the running service may write, in bytes. */
function limitFiles(service: Service, limit: number | 'unlimited'): void {
  const words = ['prlimit', '--pid', String(service.pid), `--fsize=${limit}:unlimited`]
  expect(Bun.spawnSync(words).exitCode).toBe(0)
}

/** Asks for the status until it is the expected one, for at most five seconds. */
async function untilStatus(service: Service, expected: number): Promise<void> {
  const deadline = performance.now() + 5000
  let found = 0
  while (performance.now() < deadline) {
    found = (await service.fetch('/api/status')).status
    if (found === expected) return
    await Bun.sleep(10)
  }
  expect(found).toBe(expected)
}
