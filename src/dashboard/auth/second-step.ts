import { newStepToken } from '../../accounts/second-factor.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { goTo } from '../answers.ts'
import type { DashboardDeps } from '../deps.ts'

export const SECOND_STEP = '/app/sign-in/code'

/**
 * Sends somebody whose password was right to the page that asks for the second factor. There is no
 * session yet.
 */
export function askForCode(
  { cookies, hasher, clock }: DashboardDeps,
  account: AccountRow,
  next?: string,
): Response {
  const path = next ? `${SECOND_STEP}?next=${encodeURIComponent(next)}` : SECOND_STEP
  return goTo(path, { cookies: [cookies.step(newStepToken(hasher, account, clock()))] })
}
