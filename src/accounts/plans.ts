import type { Config, Quota } from '../config.ts'

export const PLANS = ['free', 'pro', 'enterprise'] as const
export type Plan = (typeof PLANS)[number]

export const planName = (plan: Plan): string => plan[0]?.toUpperCase() + plan.slice(1)

export type BudgetGroup = 'read' | 'write'

/** Requests in any 60 seconds; 0 means no limit. */
export type Budgets = Readonly<Record<BudgetGroup, number>>

export interface PlanLimits extends Budgets, Quota {
  /** URLs in one bulk request. */
  bulkMax: number
}

/** The spec's chapter "Limits". The limits of Enterprise are settings. */
export function planLimits(config: Config): Readonly<Record<Plan, PlanLimits>> {
  return {
    free: { write: 60, read: 300, bulkMax: 100, ...config.quotas.free },
    pro: { write: 600, read: 3000, bulkMax: 1000, ...config.quotas.pro },
    enterprise: {
      ...config.quotas.enterprise,
      write: config.enterpriseWritesPerMinute,
      read: config.enterpriseReadsPerMinute,
      bulkMax: config.enterpriseBulkMax,
    },
  }
}

/** Budgets of one address. An account's redirects are charged to its reads instead. */
export interface AnonymousBudgets extends Budgets {
  /** Redirects that find their link. */
  redirect: number
}

/** For a client without a valid key. Its writes are charged, and refused with 401. */
export function anonymousBudgets(config: Config): AnonymousBudgets {
  return {
    read: config.anonymousReadsPerMinute,
    write: 60,
    redirect: config.anonymousRedirectsPerMinute,
  }
}
