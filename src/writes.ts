import type { Database } from 'bun:sqlite'
import { type SecondFactorWrites, secondFactorWrites } from './accounts/second-factor.ts'
import { type SessionWrites, sessionWrites } from './accounts/sessions.ts'
import { type AccountWrites, accountWrites } from './accounts/writes.ts'
import { type SettingWrites, settingWrites } from './db/settings.ts'
import { type BucketWrites, bucketWrites } from './hits/series.ts'
import { type SharedHitWrites, sharedHitWrites } from './hits/shared-store.ts'
import { type LinkWrites, linkWrites } from './links/store.ts'
import { type ModerationWrites, moderationWrites } from './moderation/moderation.ts'
import { type QrWrites, qrWrites } from './qr/store.ts'

/** The changes that all hosts of a cluster apply. */
export type SharedWrites = LinkWrites &
  SettingWrites &
  AccountWrites &
  SessionWrites &
  SecondFactorWrites &
  ModerationWrites &
  QrWrites &
  BucketWrites

/** They run inside a transaction of the caller, on a connection that may write. */
export function sharedWrites(db: Database): SharedWrites {
  return {
    ...linkWrites(db),
    ...settingWrites(db),
    ...accountWrites(db),
    ...sessionWrites(db),
    ...secondFactorWrites(db),
    ...moderationWrites(db),
    ...qrWrites(db),
    ...bucketWrites(db),
  }
}

/** All functions that an entry of the log may call. `host`: this one. */
export function loggedWrites(db: Database, host: string): SharedWrites & SharedHitWrites {
  return { ...sharedWrites(db), ...sharedHitWrites(db, host) }
}
