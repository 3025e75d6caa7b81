import { databaseFile, openReadonly } from '../../src/db/open.ts'
import type { HopcodeClient } from './hopcode-client.ts'

const DEADLINE_MS = 60_000
const POLL_MS = 20

/** Redirects that are not counted in the database yet. */
export const uncountedHits = async (client: HopcodeClient, dataDir: string): Promise<number> =>
  (await client.totalRedirects()) - countedHits(dataDir)

function countedHits(dataDir: string): number {
  const db = openReadonly(databaseFile(dataDir), { cacheKiB: 1024 })
  try {
    const query = db.query<{ redirects: number }, []>('SELECT redirects FROM hit_totals')
    return query.get()?.redirects ?? 0
  } finally {
    db.close()
  }
}

/**
 * Waits until the database counts every redirect so far. It asks the service once only, because
 * callers measure its CPU time. Returns the seconds; throws after a minute.
 */
export async function untilCounted(client: HopcodeClient, dataDir: string): Promise<number> {
  const startedAt = performance.now()
  const total = await client.totalRedirects()
  while (true) {
    const left = total - countedHits(dataDir)
    const elapsedMs = performance.now() - startedAt
    if (left <= 0) return elapsedMs / 1000
    if (elapsedMs > DEADLINE_MS) throw new Error(`${left} hits are not counted after a minute`)
    await Bun.sleep(POLL_MS)
  }
}
