import { expect, test } from 'bun:test'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** The long form: npm run test:durability -- kill-bulk */
const ROUNDS = Number(process.env.KILL_BULK_ROUNDS ?? 4)
/** About as long as a bulk takes on a slow machine. */
const BULK_MS = 132

test(
  'kill -9 in a bulk of 1,000: all of its links are there or none, and all if it was answered',
  async () => {
    using folder = temporaryFolder()
    const env = unlimited(folder.path)
    const key = await makeAccount(env)
    let before = 0
    const seen = new Set<number>()
    for (let round = 0; round < ROUNDS; round++) {
      await using service = await Service.start(env)
      const urls = Array.from({ length: 1000 }, (_, i) => `https://example.com/${round}/${i}`)
      const answered = acknowledged(service.post('/api/bulk-shorten', key, { urls }))
      // From long before the commit to after the answer, which a slow machine gives later.
      if (round < ROUNDS - 1)
        await Promise.race([answered, Bun.sleep((round * BULK_MS) / (ROUNDS - 1))])
      else await answered
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
  },
  60_000 + ROUNDS * 5000,
)

/** Undefined when the service was gone before it answered. */
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
