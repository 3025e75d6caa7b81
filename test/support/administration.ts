import { DomainMap } from '../../src/addresses/map.ts'
import { PublicUrls } from '../../src/addresses/urls.ts'
import type { Administration } from '../../src/cli/administration.ts'
import { subjects } from '../../src/data.ts'
import { type DataFolder, openDataFolder } from '../../src/data-folder.ts'
import { inTransaction } from '../../src/db/open.ts'
import { openSubjects, writeFunctions } from '../../src/db/subject.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { functionOf } from '../../src/lib/thread.ts'
import { MaintenanceMode } from '../../src/maintenance/mode.ts'

const BASE_URL = 'https://hop.test'

/** What commands use on a folder without a service, with the test's clock. */
export function administrationOf(path: string, clock: Clock): Administration & DataFolder {
  const folder = openDataFolder(path)
  const { db } = folder
  const send = async (name: string, args: unknown) =>
    inTransaction(db, () => functionOf(writeFunctions(subjects, db, { id: '' }), name)(args))
  const data = openSubjects(subjects, { db, callReader: send, callWriter: send, readers: [] })
  const domains = new DomainMap(
    db,
    { all: 0 },
    { baseUrl: BASE_URL, rootUrl: undefined, notFoundUrl: undefined },
  )
  return {
    ...folder,
    data,
    writer: { async catchUp() {} },
    clock,
    random: secureRandom,
    maintenance: new MaintenanceMode(data.settings, clock),
    addresses: new PublicUrls({ baseUrl: BASE_URL, cdnUrl: `${BASE_URL}/cdn`, domains }),
    baseUrl: BASE_URL,
  }
}
