import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Plan } from '../model/accounts.ts'
import type { Scene } from '../model/calls.ts'
import { commands } from '../model/commands.ts'
import { Model } from '../model/model.ts'
import { SETTINGS, Service } from '../model/service.ts'
import { ENDPOINTS, nameOf } from '../support/endpoints.ts'
import { SEED } from '../support/seed.ts'

/**
 * Random histories of the whole service, each answer held against a model of the contract. The long
 * form: npm run test:durability -- model
 */

const RUNS = Number(process.env.MODEL_RUNS ?? 5)
const COMMANDS = 50
/** With so many runs, one that never meets one of the contract's answers is a fault of the test. */
const ENOUGH_RUNS = 30
const PLANS: readonly Plan[] = ['free', 'pro', 'enterprise', 'enterprise']

test(
  `${RUNS} histories of about ${COMMANDS} commands are answered as the contract says, seed ${SEED}`,
  async () => {
    await using service = new Service()
    await service.start()
    let run = 0
    let steps = 0
    const met = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(
        fc.commands(commands, { maxCommands: 2 * COMMANDS, size: 'max' }),
        async (history) => {
          const scene = await begin(service, run++, met)
          await fc.asyncModelRun(() => ({ model: scene, real: service }), history)
          steps += [...history].length
        },
      ),
      // Shrinking a history takes longer than reading it: each attempt runs on the whole service.
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    )
    expect(run).toBe(RUNS)
    if (process.env.MODEL_RUNS)
      console.log(`${steps} commands
${tally(met)}`)
    if (RUNS >= ENOUGH_RUNS) expect(neverMet(met)).toEqual([])
  },
  60_000 + RUNS * 4000,
)

const tally = (met: Map<string, number>) =>
  [...met]
    .map(([at, times]) => `${at}: ${times}`)
    .sort()
    .join('\n')

/** Endpoints that never succeeded, and statuses that none of them has given. */
function neverMet(met: Map<string, number>): string[] {
  const answers = [...met.keys()]
  const endpoints = ENDPOINTS.map(nameOf).filter(
    (name) => !answers.some((at) => at.startsWith(`${name} 20`) || at === `${name} 302`),
  )
  const statuses = ['400', '401', '403', '404', '405', '409', '415', '422', '429', '503']
  const missing = statuses.filter((status) => !answers.some((at) => at.endsWith(` ${status}`)))
  return [...endpoints, ...missing]
}

/** Accounts, addresses and code names that no other run has, over the same database. */
async function begin(service: Service, run: number, met: Map<string, number>): Promise<Scene> {
  if (!service.isRunning) await service.start()
  service.maintain(0)
  const model = new Model({ ...SETTINGS, blockedHosts: service.blocked })
  for (const [n, plan] of PLANS.entries()) {
    const name = `${plan}-${run}-${n}`
    const key = service.addAccount(name, plan)
    model.accounts.push({ name, plan, keys: [{ key, endsAt: Number.POSITIVE_INFINITY }] })
  }
  const [high, low] = [run >> 8, run & 255]
  const addresses = [
    `100.64.${high}.${low}`,
    `::ffff:100.64.${high}.${low}`,
    `100.65.${high}.${low}`,
    `2001:db8:${run.toString(16)}:1::1`,
    `2001:db8:${run.toString(16)}:1:2:3:4:5`,
  ]
  const status = await service.ask({
    method: 'GET',
    path: '/api/status',
    from: `100.66.${high}.${low}`,
  })
  model.totalRedirects = Number(status.body.total_redirects)
  const prefix = run.toString(36).toUpperCase().padStart(4, '0')
  return { model, prefix, addresses, seen: [], met }
}
