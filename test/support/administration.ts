import { issueKey, type KeyDeps } from '../../src/accounts/keys.ts'
import { KEY_OVERLAP_MS } from '../../src/accounts/operations/keys.ts'
import type { AccountId, AccountStore } from '../../src/accounts/store.ts'
import { DomainMap } from '../../src/addresses/map.ts'
import { PublicUrls } from '../../src/addresses/urls.ts'
import type { Administration } from '../../src/cli/administration.ts'
import { linkCommands } from '../../src/cli/links.ts'
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

/** What `hopcode key rotate` and `hopcode key revoke` do to all keys of an account. */

/** `KeyDeps` in a process that may write. */
export type KeyStoreDeps = KeyDeps & { accounts: AccountStore }

interface KeyChange {
  /** The old keys expire immediately, not in 24 hours. */
  now: boolean
}

/** Returns the new key. */
export function rotateKey(deps: KeyStoreDeps, id: AccountId, change: KeyChange): string {
  const { key, stored } = issueKey(deps)
  revokeKey(deps, id, change)
  deps.accounts.addKey(id, stored, deps.clock())
  return key
}

export function revokeKey(deps: KeyStoreDeps, id: AccountId, { now }: KeyChange): void {
  const time = deps.clock()
  deps.accounts.revokeKeys(id, now ? time : time + KEY_OVERLAP_MS)
}

interface Running {
  administration: Administration
}

/** The commands on links, in the running service. */
export const disableLink = (app: Running, code: string, reason: string): Promise<string> =>
  linkCommands.disableCode(app.administration, { link: code, reason })

export const enableLink = (app: Running, code: string): Promise<string> =>
  linkCommands.enableCode(app.administration, { link: code })

export const listDisabled = (app: Running): string =>
  linkCommands.listDisabled(app.administration, { json: true }).text
