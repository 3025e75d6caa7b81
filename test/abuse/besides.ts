import { UNLIMITED } from '../support/binary.ts'
import { Attacked, type Figure, highest, Member, structure, timing } from './attacked.ts'

/** Attacks beside which others use the service. */

const SETTINGS = { ...UNLIMITED, SIGNUP: 'open', DASHBOARD_REQUESTS_PER_MINUTE: '0' }
/** Between two calls of one client. */
export const PAUSE_MS = 50

/** Attacks a service where anybody can sign up, and only the shared limits matter. */
export const start = (program: string, settings = {}) =>
  Attacked.start(program, { ...SETTINGS, ...settings })

/** Further accounts of the attacker. */
export const members = (
  { program, env }: Attacked,
  count: number,
  plan: string,
): Promise<Member[]> =>
  Promise.all(
    Array.from({ length: count }, (_, i) =>
      Member.create(program, env, `${plan}${i}@example.com`, plan),
    ),
  )

interface Others {
  /** Requests of others with another status than the expected one, and all of them. */
  refused: number
  count: number
  /** Milliseconds, ascending. */
  times: number[]
}

/** Makes calls one after the other until `isDone`. Each returns whether it succeeded. */
async function callAll(calls: readonly (() => Promise<boolean>)[], isDone: () => boolean) {
  const others: Others = { refused: 0, count: 0, times: [] }
  while (!isDone()) {
    for (const call of calls) {
      const begun = performance.now()
      const isFine = await call().catch(() => false)
      others.times.push(performance.now() - begun)
      others.count++
      if (!isFine) others.refused++
      await Bun.sleep(PAUSE_MS)
    }
  }
  others.times.sort((a, b) => a - b)
  return others
}

export async function isOk(answer: Promise<Response>, status = 200): Promise<boolean> {
  const response = await answer
  await response.arrayBuffer()
  return response.status === status
}

/** Runs the attack for `ms`, and meanwhile the calls of others and redirects. */
export async function besides(
  attacked: Attacked,
  ms: number,
  { attack, calls }: { attack: (isDone: () => boolean) => Promise<unknown>; calls: Calls },
): Promise<{ others: Others; figures: Figure[] }> {
  let others: Others = { refused: 0, count: 0, times: [] }
  const observed = await attacked.observe(async () => {
    const end = performance.now() + ms
    const isDone = () => performance.now() > end
    const attacking = attack(isDone)
    others = await callAll(calls, isDone)
    await attacking
  })
  return {
    others,
    figures: [
      structure('requests of others that were refused', others.refused, 0),
      structure('redirects that failed', observed.failed, 0),
      timing('slowest redirect', highest(observed.latencies), 50, 'ms'),
    ],
  }
}

type Calls = readonly (() => Promise<boolean>)[]
