import type { Attack } from './attacked.ts'
import { bodies, csv, parked } from './byte-attacks.ts'
import { halfSent, idle, unread, unsentBodies } from './connection-attacks.ts'
import { bulks, crowds, imports, pages, search } from './data-attacks.ts'
import { drawnImages, sheets } from './drawing.ts'
import { addresses, impostors, queries, signIns, signUps, staticFiles } from './network-attacks.ts'
import { importedPasswords, passwords } from './passwords.ts'
import { providerAnswers, providerSlots } from './provider-attacks.ts'
import { pipelines, rules } from './rules.ts'
import {
  importQueues,
  largeBodies,
  logoChecks,
  logoImages,
  longRanges,
  sources,
  unreadExports,
} from './shared-attacks.ts'
import { tls } from './tls.ts'
import { visitors } from './visitor-attacks.ts'
import { webhooks } from './webhooks.ts'
import { zips } from './zips.ts'

/** Every attack that the service must withstand, in the order in which they run. */
export const ATTACKS: readonly Attack[] = [
  bodies,
  parked,
  csv,
  search,
  bulks,
  imports,
  pages,
  crowds,
  signIns,
  signUps,
  providerAnswers,
  providerSlots,
  passwords,
  importedPasswords,
  staticFiles,
  addresses,
  impostors,
  queries,
  rules,
  pipelines,
  visitors,
  idle,
  halfSent,
  unread,
  unsentBodies,
  tls,
  unreadExports,
  logoImages,
  largeBodies,
  importQueues,
  logoChecks,
  sources,
  longRanges,
  zips,
  drawnImages,
  sheets,
  webhooks,
]
