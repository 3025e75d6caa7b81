import { expect } from 'bun:test'
import { temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { testWith } from '../support/tools.ts'
import { FAULTS } from './lib/cluster-faults.ts'
import { runClusterRounds } from './lib/cluster-rounds.ts'
import { buildMutant } from './lib/mutant.ts'

/**
 * Several hosts with one log: nothing that a client was told is lost or done twice when hosts,
 * PostgreSQL or their connections fail, and all databases are equal row by row afterwards. The long
 * form: npm run test:durability -- cluster
 */
const ROUNDS = Number(process.env.CLUSTER_ROUNDS ?? FAULTS.length)
const HOSTS = 3

/** Codes are drawn from 1024 ones, so that hosts draw the same one all the time. */
const FEW_CODES = {
  file: 'src/links/create.ts',
  changes: [
    [/code \?\? newCode\(random\)/g, "code ?? (('AAAAAA' + newCode(random).slice(0, 2)) as Code)"],
  ] as const,
}

const title = `faults amid requests to ${HOSTS} hosts, ${ROUNDS} rounds (seed ${SEED})`
testWith('postgres')(
  title,
  async () => {
    using folder = temporaryFolder()
    const program = buildMutant(folder.path, FEW_CODES)
    const { problems, ...seen } = await runClusterRounds({
      program,
      rounds: ROUNDS,
      seed: SEED,
      hosts: HOSTS,
    })
    console.log(`cluster (seed ${SEED}):`, JSON.stringify(seen))
    expect(problems).toEqual([])
    // Else the rounds showed nothing.
    expect(seen.rounds).toBe(ROUNDS)
    expect(seen.redirects).toBeGreaterThan(ROUNDS)
    expect(seen.links).toBeGreaterThan(ROUNDS)
  },
  120_000 + ROUNDS * 20_000,
)
