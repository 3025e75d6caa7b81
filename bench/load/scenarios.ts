// All load scenarios, in the order in which they run.
// npm run bench
import type { Scenario } from '../lib/scenario.ts'
import { bulk } from './bulk.ts'
import { cluster } from './cluster.ts'
import { create } from './create.ts'
import { dashboard } from './dashboard.ts'
import { isolation } from './isolation.ts'
import { list } from './list.ts'
import { mixed } from './mixed.ts'
import { qr } from './qr.ts'
import { redirect } from './redirect.ts'
import { redirectCold } from './redirect-cold.ts'
import { rules } from './rules.ts'
import { signIns } from './sign-in.ts'
import { soak } from './soak.ts'
import { start } from './start.ts'
import { visits } from './visits.ts'

export const SCENARIOS: readonly Scenario[] = [
  redirect,
  rules,
  visits,
  redirectCold,
  create,
  bulk,
  qr,
  mixed,
  isolation,
  list,
  dashboard,
  signIns,
  start,
  cluster,
  soak,
]
