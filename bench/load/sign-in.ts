// What does a sign-in with a password cost?
// npm run bench -- sign-in --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setPassword, signIn } from '../lib/dashboard-client.ts'
import { measureVariants, type Plan } from '../lib/figures.ts'
import { createAccount, issueResetPath } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { ACCOUNT_EMAIL, hopcode, hopcodeProgram, WITHOUT_LIMITS } from '../lib/variants.ts'

const PASSWORD = 'a password of the bench'

export const signIns: Scenario = {
  name: 'sign-in',
  question: 'What does a sign-in with a password cost?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'hopcode' }],
    measure: () => measureRound(program, options),
    metrics: [
      { key: 'perSecond', label: 'sign-ins/s', digits: 1, ratio: false },
      { key: 'cpu', label: 'CPU ms per sign-in', digits: 1, ratio: false },
    ],
    figures: {},
    notes: ['One at a time, each with a new session. The hash of the password is most of it.'],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(program: string[], { seconds }: LoadOptions): Promise<RoundResult> {
  using temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  mkdirSync(dataDir)
  createAccount(program, dataDir)
  const resetPath = issueResetPath(program, dataDir)
  await using server = await startServer(hopcode(program, dataDir, WITHOUT_LIMITS))
  await setPassword(server.origin, resetPath, PASSWORD)
  const who = { email: ACCOUNT_EMAIL, password: PASSWORD }
  await signIn(server.origin, who)
  const before = server.cpuSeconds()
  const startedAt = performance.now()
  let done = 0
  for (; performance.now() - startedAt < 1000 * seconds; done++) await signIn(server.origin, who)
  const elapsedSeconds = (performance.now() - startedAt) / 1000
  const cpu = (1000 * (server.cpuSeconds() - before)) / done
  await server.stop()
  return { figures: { perSecond: done / elapsedSeconds, cpu } }
}
