import { identities } from './accounts/identities.ts'
import { oneTimeLinks } from './accounts/one-time-links.ts'
import { accounts } from './accounts/operations/accounts.ts'
import { keys } from './accounts/operations/keys.ts'
import { members } from './accounts/operations/members.ts'
import { registrations } from './accounts/operations/registration.ts'
import { secondFactors } from './accounts/second-factor.ts'
import { sessions } from './accounts/sessions.ts'
import { totals } from './accounts/totals.ts'
import { appFiles } from './addresses/app-files.ts'
import { domains } from './addresses/domains.ts'
import { aliases } from './addresses/names.ts'
import { unknownPaths } from './addresses/unknown-paths.ts'
import { topLinks } from './analytics/top.ts'
import { blockedHosts } from './blocklist/stored-hosts.ts'
import { checks } from './checks/store.ts'
import { settings } from './db/settings.ts'
import type { DataOf } from './db/subject.ts'
import { history } from './history/subject.ts'
import { hits } from './hits/subject.ts'
import { imports } from './import/store.ts'
import { campaignTemplates } from './links/campaign-templates.ts'
import { publicPages } from './links/public-pages.ts'
import { properties } from './links/read.ts'
import { links } from './links/subject.ts'
import { lists } from './lists/subject.ts'
import { moderation } from './moderation/moderation.ts'
import { labelFormats } from './qr/label-formats.ts'
import { qrSettings } from './qr/store.ts'
import { visits } from './visits/store.ts'
import { webhooks } from './webhooks/store.ts'

/** Everything that the program stores, by subject. */
export const subjects = {
  accounts,
  identities,
  keys,
  members,
  oneTimeLinks,
  registrations,
  secondFactors,
  sessions,
  settings,
  moderation,
  blockedHosts,
  domains,
  appFiles,
  unknownPaths,
  links,
  lists,
  properties,
  aliases,
  imports,
  publicPages,
  qrSettings,
  labelFormats,
  campaignTemplates,
  hits,
  checks,
  history,
  topLinks,
  visits,
  totals,
  webhooks,
}

/** `data.<subject>.<operation>(…)`: see db/subject.ts. */
export type Data = DataOf<typeof subjects>
