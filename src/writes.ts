import type { Database } from 'bun:sqlite'
import { secondFactorWrites } from './accounts/second-factor.ts'
import { sessionWrites } from './accounts/sessions.ts'
import { accountWrites } from './accounts/writes.ts'
import { rowHashes } from './cluster/rows.ts'
import { subjects } from './data.ts'
import { settingWrites } from './db/settings.ts'
import { writeFunctions } from './db/subject.ts'
import type { RecentHits } from './hits/recent.ts'
import { bucketWrites } from './hits/series.ts'
import { sharedHitWrites } from './hits/shared-store.ts'
import { importWrites } from './import/store.ts'
import { linkWrites } from './links/store.ts'
import { moderationWrites } from './moderation/moderation.ts'
import { qrWrites } from './qr/store.ts'
import { visitWrites } from './visits/store.ts'

/**
 * The changes that all hosts of a cluster apply. They run inside a transaction of the caller, on a
 * connection that may write.
 */
export function sharedWrites(db: Database) {
  return {
    ...linkWrites(db),
    ...importWrites(db),
    ...settingWrites(db),
    ...accountWrites(db),
    ...sessionWrites(db),
    ...secondFactorWrites(db),
    ...moderationWrites(db),
    ...qrWrites(db),
    ...bucketWrites(db),
    ...visitWrites(db),
  }
}

export type SharedWrites = ReturnType<typeof sharedWrites>

/** All functions that an entry of the log may call. `host`: this one. */
export function loggedWrites(db: Database, host: string, recent?: RecentHits) {
  return {
    ...sharedWrites(db),
    ...sharedHitWrites(db, host, recent),
    ...rowHashes(db),
    ...writeFunctions(subjects, db),
  }
}
