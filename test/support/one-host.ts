/**
 * End-to-end tests that do not apply to a service of several hosts with a random host for each
 * request, and why. `npm run test:cluster` leaves out whole files, and expects listed tests to fail.
 */

interface OneHost {
  file: string
  /** A part of the titles; absent: the whole file. */
  title?: string
  reason: string
}

const LIMITS = 'without client affinity or VALKEY_URL each host has limits of its own'

const LIST: readonly OneHost[] = [
  { file: 'limits-charges', reason: LIMITS },
  { file: 'limits-sizes', reason: LIMITS },
  { file: 'limits-visitors', reason: LIMITS },
  { file: 'limits', reason: LIMITS },
  { file: 'cluster', reason: 'starts clusters itself' },
]

/** Why a test, or a whole file, does not apply; undefined if it does. */
export function ofOneHost(file: string, title?: string): string | undefined {
  const name = /([^/]+)\.test\.ts$/.exec(file)?.[1]
  const found = LIST.find(
    (one) => one.file === name && (one.title === undefined || title?.includes(one.title)),
  )
  return found?.reason
}
