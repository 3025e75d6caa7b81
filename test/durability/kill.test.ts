import { expect, test } from 'bun:test'
import { makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/**
 * Nothing that was answered is lost when the process is killed. The long form is bench-sized: `npm
 * run test:durability`.
 */

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 20)
const WAVE = 16
const REDIRECTS = 10_000

const unlimited = (dataDir: string) => ({
  DATA_DIR: dataDir,
  ANONYMOUS_READS_PER_MINUTE: '0',
  ENTERPRISE_WRITES_PER_MINUTE: '0',
})

const rounds = `in ${ROUNDS} rounds of ${ROUNDS}`
test(`kill -9 amid 10,000 redirects: the counts equal the 302s received, ${rounds}`, async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  let code: string | undefined
  let received = 0
  for (let round = 0; round < ROUNDS; round++) {
    await using service = await Service.start(env)
    code ??= await service.shorten(key, 'https://example.com/kill')
    expect(await service.hitCount(code)).toBe(received)
    // Between two waves nothing is on its way, while flushes go on whenever they like.
    const waves = 1 + Math.floor((Math.random() * REDIRECTS) / WAVE)
    for (let wave = 0; wave < waves; wave++) received += await follow(service, code, WAVE)
    expect(await service.end('SIGKILL')).toBe('SIGKILL')
  }
  await using service = await Service.start(env)
  expect(await service.hitCount(code as string)).toBe(received)
}, 120_000)

test('kill -9 with redirects on their way: each one received is counted, and none twice', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  let code: string | undefined
  let least = 0
  let most = 0
  for (let round = 0; round < 5; round++) {
    await using service = await Service.start(env)
    code ??= await service.shorten(key, 'https://example.com/kill')
    const followed = code
    const waves = 5 + Math.floor(Math.random() * 40)
    for (let wave = 0; wave < waves; wave++) await follow(service, followed, WAVE)
    least += waves * WAVE
    most += waves * WAVE
    const onTheirWay = Promise.allSettled(
      Array.from({ length: WAVE }, () => follow(service, followed, 1)),
    )
    // Turns of the loop until the kill, so that it meets some requests sent and some answered.
    for (let turn = 0; turn < round * 2; turn++) await Promise.resolve()
    await service.end('SIGKILL')
    const answered = (await onTheirWay).filter(({ status }) => status === 'fulfilled')
    least += answered.length
    most += WAVE
    await using next = await Service.start(env)
    const counted = await next.hitCount(followed)
    expect(counted).toBeGreaterThanOrEqual(least)
    expect(counted).toBeLessThanOrEqual(most)
    least = counted
    most = counted
  }
}, 120_000)

test('kill -9 under writes: every change that was acknowledged is there, and no refused one', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  /** What the API has acknowledged: the URL of each code, or null once it is deleted. */
  const known = new Map<string, string | null>()
  for (let round = 0; round < 5; round++) {
    await using service = await Service.start(env)
    await checkAll(service, known)
    const writers = Array.from({ length: 8 }, (_, i) => write(service, key, known, `${round}-${i}`))
    const enough = known.size + 40 + Math.floor(Math.random() * 100)
    while (known.size < enough) await Bun.sleep(1)
    await service.end('SIGKILL')
    await Promise.all(writers)
  }
  await using service = await Service.start(env)
  expect(known.size).toBeGreaterThan(200)
  await checkAll(service, known)
}, 120_000)

test('kill -9 in a bulk of 1,000: all of its links are there or none, and all if it was answered', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  let before = 0
  const seen = new Set<number>()
  for (let round = 0; round < 12; round++) {
    await using service = await Service.start(env)
    const urls = Array.from({ length: 1000 }, (_, i) => `https://example.com/${round}/${i}`)
    const answered = acknowledged(service.post('/api/bulk-shorten', key, { urls }))
    // From long before the commit to after the answer.
    await Promise.race([answered, Bun.sleep(round * 12)])
    await service.end('SIGKILL')
    const isAnswered = (await answered) !== undefined
    await using next = await Service.start(env)
    const list = await next.fetch('/api/list?limit=1', { headers: { 'x-api-key': key } })
    const { total } = (await list.json()) as { total: number }
    expect([0, 1000]).toContain(total - before)
    if (isAnswered) expect(total - before).toBe(1000)
    seen.add(total - before)
    before = total
  }
  // The rounds met both ends, or they showed nothing.
  expect([...seen].sort()).toEqual([0, 1000])
}, 60_000)

/** Follows a link `times` at once. Returns how many; throws if one is not answered by a 302. */
async function follow(service: Service, code: string, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => service.fetch(`/${code}`)))
  for (const { status } of answers) expect(status).toBe(302)
  return answers.length
}

/** Creates, changes and deletes until the service is gone, and notes what was acknowledged. */
async function write(
  service: Service,
  key: string,
  known: Map<string, string | null>,
  name: string,
): Promise<void> {
  for (let i = 0; ; i++) {
    const url = `https://example.com/${name}/${i}`
    const created = await acknowledged(service.post('/api/shorten', key, { url }))
    if (!created) return
    const { code, passcode } = created
    known.set(code, url)
    if (i % 3 === 1) {
      const next = `${url}?changed`
      // Either may be there until the answer comes.
      known.delete(code)
      if (!(await acknowledged(service.post('/api/update', key, { code, passcode, url: next })))) {
        return
      }
      known.set(code, next)
    } else if (i % 3 === 2) {
      known.delete(code)
      if (!(await acknowledged(service.post('/api/delete', key, { code, passcode })))) return
      known.set(code, null)
    }
  }
}

async function acknowledged(
  request: Promise<Response>,
): Promise<{ code: string; passcode: string } | undefined> {
  try {
    const response = await request
    expect(response.ok).toBe(true)
    return (await response.json()) as { code: string; passcode: string }
  } catch (error) {
    if (error instanceof TypeError || (error as { code?: string }).code) return undefined
    throw error
  }
}

async function checkAll(service: Service, known: Map<string, string | null>): Promise<void> {
  for (const [code, url] of known) {
    const response = await service.fetch(`/${code}`)
    expect([code, response.status]).toEqual([code, url === null ? 404 : 302])
    expect(response.headers.get('location')).toBe(url)
  }
}
