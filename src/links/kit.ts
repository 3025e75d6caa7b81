import type { PasswordHashing } from '../accounts/passwords.ts'
import type { Plan, PlanLimits } from '../accounts/plans.ts'
import type { SecretHasher } from '../accounts/secrets.ts'
import type { AliasReads, AliasRules } from '../addresses/names.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import type { Decider } from '../db/writer.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Clock } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import type { DestinationPolicy } from './destination-policy.ts'
import type { NewUrlFilter } from './link.ts'
import type { LinkReads, PropertyReads } from './read.ts'
import type { LinkWriter } from './writer.ts'

/**
 * What operations on links use: objects that exist once in the service. Each takes the whole,
 * whatever it needs of it.
 */
export interface Kit {
  data: { links: LinkReads; aliases: AliasReads; properties: PropertyReads }
  links: LinkWriter
  writer: Decider
  hits: HitCounts
  addresses: PublicUrls
  aliasRules: AliasRules
  blocklist: NewUrlFilter
  destinationPolicy: DestinationPolicy
  passwords: PasswordHashing
  hasher: SecretHasher
  plans: Readonly<Record<Plan, PlanLimits>>
  clock: Clock
  random: RandomBytes
}
