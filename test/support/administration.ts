import type { Administration } from '../../src/cli/administration.ts'
import { type DataFolder, openDataFolder } from '../../src/data-folder.ts'
import { inTransaction } from '../../src/db/open.ts'
import { SettingStore } from '../../src/db/settings.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { functionOf } from '../../src/lib/thread.ts'
import { AliasReads } from '../../src/links/aliases.ts'
import { PublicUrls } from '../../src/links/link.ts'
import { LinkReads } from '../../src/links/read.ts'
import { MaintenanceMode } from '../../src/maintenance/mode.ts'
import { Moderation, ModerationReads } from '../../src/moderation/moderation.ts'
import { sharedWrites } from '../../src/writes.ts'

const BASE_URL = 'https://hop.test'

/** What commands use on a folder without a service, with the test's clock. */
export function administrationOf(path: string, clock: Clock): Administration & DataFolder {
  const folder = openDataFolder(path)
  const { db } = folder
  const writer = {
    call: async (name: string, args: unknown) =>
      inTransaction(db, () => functionOf(sharedWrites(db), name)(args)) as never,
    async catchUp() {},
  }
  const effects = { rulesChanged() {} }
  return {
    ...folder,
    writer,
    clock,
    random: secureRandom,
    moderation: new Moderation({ reads: new ModerationReads(db), writer, effects }),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    reads: new LinkReads(db),
    aliases: new AliasReads(db),
    addresses: new PublicUrls({ baseUrl: BASE_URL, cdnUrl: `${BASE_URL}/cdn` }),
    baseUrl: BASE_URL,
  }
}
