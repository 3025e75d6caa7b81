import { expect, test } from 'bun:test'
import { binary } from '../support/binary.ts'
import { SEED } from '../support/seed.ts'
import { runRounds } from './lib/kill-rounds.ts'

/**
 * Nothing that was answered is lost when the process is killed, nothing that was ended comes back,
 * and no hit is counted twice. The long form: npm run test:durability -- kill
 */
const ROUNDS = Number(process.env.KILL_ROUNDS ?? 4)

const title = `kill -9 amid requests of every kind, ${ROUNDS} rounds (seed ${SEED})`
test(
  title,
  async () => {
    const { problems, ...seen } = await runRounds({
      program: await binary(),
      rounds: ROUNDS,
      seed: SEED,
    })
    console.log(`kill -9 (seed ${SEED}):`, JSON.stringify(seen))
    expect(problems).toEqual([])
    // Else the rounds showed nothing.
    expect(seen.rounds).toBe(ROUNDS)
    expect(seen.redirects).toBeGreaterThan(ROUNDS)
    expect(seen.links).toBeGreaterThan(ROUNDS / 4)
  },
  60_000 + ROUNDS * 10_000,
)
