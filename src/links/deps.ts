import type { Plan, PlanLimits } from '../accounts/plans.ts'
import type { SecretHasher } from '../accounts/secrets.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Clock } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import type { Pace } from '../limits/pace.ts'
import type { Addresses } from './addresses.ts'
import type { LinkPages } from './link-pages.ts'
import type { LinkWriter } from './links.ts'
import type { LinkReads } from './store.ts'

/** What the operations on links work with. */
export interface LinkDeps {
  links: LinkWriter
  reads: LinkReads
  pages: Pick<LinkPages, 'find'>
  hits: HitCounts
  addresses: Addresses
  /** Spreads batches over time, by the bytes of their URLs. */
  pace: Pace
  blocklist: { isBlocked(url: string): boolean }
  hasher: SecretHasher
  plans: Readonly<Record<Plan, PlanLimits>>
  clock: Clock
  random: RandomBytes
}
