import { type SecondFactorWrites, secondFactorWrites } from '../accounts/second-factor.ts'
import { type SessionWrites, sessionWrites } from '../accounts/sessions.ts'
import { type AccountWrites, accountWrites } from '../accounts/writes.ts'
import { Checkpoints } from '../db/checkpoint.ts'
import { closeWritable, openWritable } from '../db/open.ts'
import { type SettingWrites, settingWrites } from '../db/settings.ts'
import { commitTogether } from '../db/writer.ts'
import { type HitWrites, hitWrites } from '../hits/store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { serveThread } from '../lib/thread.ts'
import { type SearchWrites, searchWrites } from '../links/search-index.ts'
import { type LinkWrites, linkWrites } from '../links/store.ts'
import { type ModerationWrites, moderationWrites } from '../moderation/moderation.ts'
import { type QrWrites, qrWrites } from '../qr/store.ts'

/** The one thread that writes the database while the service runs. */
export type Writes = LinkWrites &
  SearchWrites &
  HitWrites &
  SettingWrites &
  AccountWrites &
  SessionWrites &
  SecondFactorWrites &
  ModerationWrites &
  QrWrites

serveThread(({ file, journal }: { file: string; journal: string }) => {
  setThreadPriority('normal')
  const db = openWritable(file)
  const checkpoints = new Checkpoints(db)
  const functions: Writes = {
    ...linkWrites(db),
    ...searchWrites(db),
    ...hitWrites(db, JournalFile.open(journal)),
    ...settingWrites(db),
    ...accountWrites(db),
    ...sessionWrites(db),
    ...secondFactorWrites(db),
    ...moderationWrites(db),
    ...qrWrites(db),
  }
  return {
    answer: (calls) => commitTogether(db, functions, calls),
    onBatchDone: () => checkpoints.afterCommit(),
    close: () => {
      checkpoints.close()
      closeWritable(db)
    },
  }
})
