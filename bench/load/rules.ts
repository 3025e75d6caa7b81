// What do an expiry and a forwarded query cost, compared with a plain link?
// npm run bench -- rules --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { atLeast, atMost, main, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import type { Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const rules: Scenario = {
  name: 'rules',
  question: 'What do an expiry and a forwarded query cost, compared with a plain link?',
  run,
}

const RULES = { expires_at: '2099-01-01T00:00:00Z', forward_query: true }
const QUERY = '?medium=poster'

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing two services and their links')
  using workspace = await emptyWorkspace(options)
  const { program, temporaryPath } = workspace
  const contenderOf = async (name: string) => {
    const dataDir = join(temporaryPath, name)
    mkdirSync(dataDir)
    return hopcodeContender(name, program, dataDir)
  }
  const plain = await contenderOf('plain')
  const withRules = await contenderOf('rules')
  await setRules(withRules)
  const contenders: Contender[] = [plain, withRules, { ...withRules, name: 'query', query: QUERY }]
  const plan: Plan<Contender> = {
    variants: contenders,
    measure: (contender) => measureRedirects(contender, options),
    baseline: 'plain',
    metrics: REDIRECT_METRICS,
    figures: {
      'redirects/s of links with an expiry and `forward_query`, beside plain links': main(
        ratio('rules', 'plain', 'requestsPerSecond', atLeast(0.85, 0.95)),
      ),
      'CPU per redirect of the same, beside plain links': main(
        ratio('rules', 'plain', 'cpuMicros', atMost(1.2, 1.1)),
      ),
      'the same with a query, which is merged into that of the destination': ratio(
        'query',
        'plain',
        'cpuMicros',
      ),
    },
    ...redirectFacts(options),
  }
  return await measureVariants(plan, options, say)
}

async function setRules({ launch, apiKey, links }: Contender & { apiKey: string }): Promise<void> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  for (const { code } of links) await client.patchLink(code, RULES)
  await server.stop()
}
