import type { Config } from '../config.ts'

export const PLANS = ['free', 'pro', 'enterprise'] as const
export type Plan = (typeof PLANS)[number]

export const planName = (plan: Plan): string => plan[0]?.toUpperCase() + plan.slice(1)

export type BudgetGroup = 'read' | 'write'

/** Requests in any 60 seconds; 0 means no limit. */
export type Budgets = Readonly<Record<BudgetGroup, number>>

/** Requests, `bulkMax` URLs in one bulk request, and the quota of an account. */
export type PlanLimits = Config['plans'][Plan]

/** Budgets of one address. An account's redirects are charged to its reads instead. */
export type AnonymousBudgets = Config['anonymous']
