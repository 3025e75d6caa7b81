import { closeWritable, openWritable } from './db/open.ts'
import { type SettingWrites, settingWrites } from './db/settings.ts'
import { commitTogether } from './db/writer.ts'
import { HitJournal } from './hits/journal.ts'
import { type HitWrites, hitWrites } from './hits/store.ts'
import { serveThread } from './lib/thread.ts'
import { type SearchWrites, searchWrites } from './links/search.ts'
import { type LinkWrites, linkWrites } from './links/store.ts'

/** The one thread that writes the database while the service runs. */
export type Writes = LinkWrites & SearchWrites & HitWrites & SettingWrites

serveThread(({ file, journal }: { file: string; journal: string }) => {
  const db = openWritable(file)
  const functions: Writes = {
    ...linkWrites(db),
    ...searchWrites(db),
    ...hitWrites(db, HitJournal.open(journal)),
    ...settingWrites(db),
  }
  return {
    answer: (calls) => commitTogether(db, functions, calls),
    close: () => closeWritable(db),
  }
})
