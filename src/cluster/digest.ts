import type { Database } from 'bun:sqlite'
import type { Outcome } from '../lib/thread.ts'

/**
 * A running hash over the results of all calls. Results contain ids, codes and counts of the
 * database, so databases that differ soon have different digests.
 */
export function nextDigest(digest: string, outcomes: readonly Outcome[]): string {
  // Texts of errors may differ from one release to the next.
  const results = outcomes.map((outcome) => ('value' in outcome ? outcome.value : 'error'))
  return hashed(digest, JSON.stringify(results))
}

const SUMS = `SELECT json_array(
  (SELECT count(*) FROM links), (SELECT count(*) FROM api_keys), (SELECT count(*) FROM sessions),
  (SELECT count(*) FROM disabled_codes), (SELECT count(*) FROM link_tags),
  (SELECT count(*) FROM aliases),
  (SELECT total(link_count) FROM accounts), (SELECT total(url_bytes) FROM accounts),
  (SELECT total(count) FROM account_hits), (SELECT total(redirects) FROM hit_totals)
) AS sums`

/** Adds numbers of rows and sums, which also show rows that were changed in another way. */
export function withSums(db: Database, digest: string): string {
  const row = db.query<{ sums: string }, []>(SUMS).get()
  return hashed(digest, row?.sums ?? '')
}

export const FIRST_DIGEST = '0'

const hashed = (digest: string, text: string): string =>
  Bun.hash.wyhash(text, BigInt(`0x${digest}`)).toString(16)
