// What do an expiry and a forwarded query cost, compared with a plain link?
// npm run bench -- rules --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianRatio, type Progress } from '../lib/rounds.ts'
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
  // An older commit may add headers where the control thread answers.
  const withRules = { ...(await contenderOf('rules')), sameHeaders: false }
  await setRules(withRules)
  const contenders: Contender[] = [plain, withRules, { ...withRules, name: 'query', query: QUERY }]
  const measure = (contender: Contender) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const ratio = (key: string, name = 'rules') => medianRatio(variants, name, 'plain', key)
  return {
    baseline: 'plain',
    metrics: REDIRECT_METRICS,
    variants,
    summary: [
      {
        label: 'redirects/s of links with an expiry and `forward_query`, beside plain links',
        value: ratio('requestsPerSecond'),
        unit: '×',
        digits: 2,
        isMain: true,
        target: { sense: '≥', value: 0.85, stretch: 0.95 },
      },
      {
        label: 'CPU per redirect of the same, beside plain links',
        value: ratio('cpuMicros'),
        unit: '×',
        digits: 2,
        isMain: true,
        target: { sense: '≤', value: 1.2, stretch: 1.1 },
      },
      {
        label: 'the same with a query, which is merged into that of the destination',
        value: ratio('cpuMicros', 'query'),
        unit: '×',
        digits: 2,
      },
    ],
    ...redirectFacts(options),
  }
}

async function setRules({ launch, apiKey, links }: Contender & { apiKey: string }): Promise<void> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  for (const { code } of links) await client.patchLink(code, RULES)
  await server.stop()
}
